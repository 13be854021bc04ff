// Package collective lets a fixed set of processes move and reduce vectors
// together: AllReduce, Broadcast, AllGather, Barrier.
//
// The processes of a job agree on a [View]; a process's place in it is its
// rank. A [Group] runs collectives over one View. Every rank makes the same
// calls in the same order, as in MPI and NCCL. Every operation begins with a
// message from each rank to the next, by which neighbours compare calls: a
// difference is reported on all ranks with both calls (see [MismatchError]),
// never a hang. A Broadcast may be over on some ranks before others find their
// mistake; those hear of it in their next call.
//
// # Layers
//
// A Group counts calls, holds deadlines and names culprits. Below it an
// [Engine] does the work: the engine of this package runs the schedules of
// package schedule over any [Transport]; an engine over NCCL does the same for
// device memory. [Local] is the transport between goroutines of one process;
// package tcp has the one between processes. Package cluster is the front
// door that finds the other processes.
//
// # Ring order
//
// Reductions give the same bits every time, because floating-point operands
// are always combined in one order. Element i of an arena lies in block
// i/4096; block b is folded beginning at rank b mod size and going up round
// the ring, one operand at a time. Each algorithm keeps that order, so the
// bits do not depend on the algorithm, the transport, the segment size or on
// how an arena was cut into calls (see [Vector.At]).
//
// [AnyOrder], where it is asked for, lets AllReduce fold in other orders: still
// the same bits on every rank, but they depend on the plan.
//
// # Errors
//
// When a rank dies or falls silent, every call in progress on every surviving
// rank ends with a [*RankError] that names it. The Group is then broken: all
// later calls return the same error at once.
package collective
