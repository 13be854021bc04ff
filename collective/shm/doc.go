// Package shm carries messages and reductions between the processes of one host
// through memory that they share.
//
// A [Transport] lies over that of package tcp, which remains responsible for
// liveness. Heartbeats, goodbyes and reports of failed ranks use its
// connections, so a killed or stopped process is named as it would be over TCP.
// Messages between ranks of one host go through ring buffers in shared memory.
// Messages to other hosts go over TCP. If all ranks of a View are on one host,
// AllReduce and Barrier use no messages at all. Neither do other operations with
// pieces of one length, if the pieces are small and shown with the call, or if
// ranks can read them in place or through the kernel. An AllReduce has the bits
// of every other method and takes one of four ways:
//
//   - A few bytes are shown with the call itself, and every rank folds them.
//   - More bytes are copied, chunk by chunk, to where all ranks read and fold
//     them.
//   - Vectors that lie in the [Arenas] of every rank are folded in place. One
//     rank folds each part and writes the result into all vectors.
//   - Two ranks read large vectors out of each other's memory through the kernel
//     (process_vm_readv), if it lets them and trial calls have shown that this is
//     faster than copies.
//
// The memory is an anonymous file that belongs only to the processes that have
// mapped it. It has no path, is reserved in full before use, and cannot shrink.
// So there is nothing to clean up, and no access to it can fail. If it is not
// available, all ranks of the host use TCP.
//
// # Memory
//
// Every flag and every counter of a ring buffer has one writer and only grows. No
// two of them share a cache line. No call waits until others are done with the
// previous call: what a rank overwrites exists more than once, or a flag guards it.
//
// When a call fails, another rank may be stopped in the middle of the call and
// continue later. So a failed call does two things before it returns. It marks
// itself as failed, which fails the call of every rank that reads its vector
// afterwards. And it puts private pages in place of a vector that others can
// write to.
package shm
