// Package ncclgroup lets a collective.Group work on the memory of a GPU: its
// [Engine] carries out calls of device vectors by NCCL, on a CUDA stream, and
// leaves calls of host vectors to the engine below it, which is the one that the
// group would have without a GPU.
//
// # What the engine below does
//
// NCCL does not say who is missing, does not compare calls, and waits for ever
// for a peer that died. So the other engine, with its connections and
// heartbeats, does that for it. The id of a communicator travels over it. Before
// NCCL begins a call all ranks agree over it that they make the same one: who
// calls something else, or does not call, is named. And when it finds a rank
// dead, every other rank aborts its communicator, which ends the call in
// progress there. Barriers are its own.
//
// # What is staged
//
// A call that NCCL cannot do, or may not, is done by the engine below, on copies
// in pinned host memory: all calls where a rank has no NCCL, reductions under
// collective.RingOrder, since NCCL folds in orders of its own, means of integers,
// which are exact here, and calls of which one vector is in host memory. Results
// are then those of the engine below, to the bit. All ranks must choose alike: a
// vector that is in device memory on one rank is so on all.
//
// Under collective.AnyOrder NCCL reduces. Ranks get the same sums, but another
// number of ranks, another version or another machine may get others; NCCL
// multiplies by 1/size before it adds, for a mean; and its minimum and maximum
// leave out a NaN where another rank has a number.
//
// NCCL's own connections between hosts are neither encrypted nor authenticated,
// whatever those of the engine below are.
//
// # Captures, and calls beside other work
//
// A Group's calls wait on the host, so they cannot be captured. [Engine.Queue]
// can: it puts a call on the stream and waits for nothing. [Engine.Queued] puts it
// on whichever stream it is given, so that it goes on beside what is in others.
// Nobody compares such calls. [Engine.Broken] then says when the communicator has been aborted, which
// also lets the stream go on, with garbage in its vectors; Config.Breaking is told
// before. NCCL keeps an aborted communicator until the graphs that hold it are
// gone, so who captured it destroys them then, and in any case before Close. No
// call waits for that.
package ncclgroup
