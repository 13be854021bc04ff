// Package collective moves and reduces vectors among a fixed set of processes:
// AllReduce, Broadcast, AllGather, Barrier and others.
//
// The processes of a job agree on a [View]. The position of a process in it is
// its rank. A [Group] runs collectives over one View. As in MPI and NCCL, every
// rank makes the same calls in the same order. In every operation, each rank sends
// a message to the next, by which neighbours compare calls. If the
// calls differ, no rank hangs: every rank gets an error that prints both calls
// (see [MismatchError]). A Broadcast may be over on some ranks before others
// notice the mistake. Those ranks get the error from their next call.
//
// Ranks that do not step together, such as those of an asynchronous parameter server,
// exchange [Messages] instead: each sends when it wants to, and receives from whichever
// rank sends first. A Group exchanges messages or makes calls, not both at once.
//
// # Layers
//
// A Group counts calls, enforces deadlines and names culprits. Below it, an
// [Engine] does the work. The engine of this package runs the algorithms of
// package schedule over any [Transport]. An engine over NCCL does the same for
// device memory. [Local] is the transport between goroutines of one process;
// package tcp has the transport between processes. Package cluster finds the
// other processes and makes groups.
//
// # Where to look
//
// Each operation has a file: allreduce.go chooses the algorithm of an AllReduce
// (ringreduce.go, directreduce.go, collect.go, movereduce.go), allgather.go that
// of an AllGather, and so on.
//
//   - A gradient leaves through wire.post (wire.go), which passes the message to a
//     sender (sender.go), which calls the Transport. If all ranks share memory, a
//     Reducer carries out the call instead; see rendezvous.go for that of Local.
//   - A lost rank is noticed by the Transport (monitor.lost in package tcp). A rank
//     that is alive but late is noticed by the watchdog (watchdog.go) and named by
//     HostEngine.tooLate.
//   - caller.complete (caller.go) adds the call and the culprit's name to an error.
//   - Header.Match (call.go) compares the calls of two ranks.
//   - Messages.Next (messages.go) waits in the Transport's Abilities.Next; see localnext.go
//     for that of Local.
//   - waits.go and flight.go record calls and how long each rank waited for each peer.
//
// # Ring order
//
// Reductions always give the same bits, because floating-point operands are
// always combined in the same order. Element i of an arena lies in block
// i/4096. The fold of block b begins at rank b mod size and takes one operand
// at a time, going up the ring. Every algorithm keeps that order. So the bits
// do not depend on the algorithm, the transport, the segment size or how an
// arena was cut into calls (see [Vector.At]).
//
// [AnyOrder] lets AllReduce fold in other orders. All ranks still get the same
// bits, but the bits depend on the plan.
//
// # Errors
//
// When a rank dies or falls silent, every call in progress on every surviving
// rank ends with a [*RankError] that names that rank. The Group is then broken:
// all later calls return the same error at once. The vectors of a call that
// failed may have been changed. A rank that had already finished the call gets the
// error from its next one, so survivors may have finished different numbers of calls.
//
// The end of a call's context, also of its deadline, breaks the Group too, on every rank,
// because the others wait for this rank's part of the call. There is no retry: make a new Group,
// such as by Node.Regroup of package cluster.
package collective
