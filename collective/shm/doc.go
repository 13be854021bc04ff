// Package shm carries messages, and reductions, between the processes of one
// host through memory that they share.
//
// A [Transport] lies over that of package tcp. What says who lives stays there:
// heartbeats, goodbyes and the news of who failed go over its connections, so a
// process that is killed or stopped is named as it would be over TCP. Messages
// between ranks of one host go through rings of bytes in shared memory, those to
// other hosts as before. Where all ranks of a View are on one host, AllReduce,
// Barrier and AllGathers of a few KiB go through no messages at all, and an
// AllReduce, whose bits are those of every other method, goes one of four ways:
//
//   - A few bytes are shown beside the call itself, and every rank folds them.
//   - Others are copied, some at a time, to where all read them and fold.
//   - Vectors that every rank has in its [Arenas] are folded where they are, each
//     part by one rank, which writes the result into all of them.
//   - Two ranks read large vectors out of each other's memory by the kernel, if it
//     lets them (process_vm_readv).
//
// The memory is an anonymous file that belongs to nobody but those who have
// mapped it. It has no name, is reserved in full before it is used, and cannot
// shrink: there is nothing to clean up, and no access to it can fail. Where it
// cannot be had, all ranks of the host go on over TCP.
//
// # Memory
//
// Every word that ranks wait for lies in a cache line of its own, has one writer
// and only grows. No call waits for the others to be done with the one before:
// what a rank overwrites is kept twice, or guarded by such a word.
//
// When a call fails, some rank may be stopped in the middle of it, and continue
// later. So before it returns, a failed call marks itself as failed, which ends
// the call of whoever has read its vector since, and puts private pages in the
// place of a vector that others can write to.
package shm
