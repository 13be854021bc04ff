// Package ncclgroup lets a collective.Group work on GPU memory. Its [Engine] carries
// out calls on device vectors with NCCL, on a CUDA stream. Calls on host vectors go to
// the host engine below it, which the group would use without a GPU.
//
// # What the host engine does
//
// NCCL does not say which rank is missing, does not compare calls, and waits forever for
// a dead peer. The host engine has connections and heartbeats, so it does this for NCCL:
//
//   - It carries the id of a communicator to all ranks.
//   - Before NCCL begins a call, all ranks agree that they make the same one. A rank that
//     makes another call, or none, is named.
//   - When the devices have finished a call, the ranks meet, so that a call fails on all
//     ranks if it is interrupted on one.
//   - When it finds a rank dead, every other rank aborts its communicator, which ends the
//     call in progress there.
//   - It carries out barriers.
//
// # What is staged
//
// The host engine also carries out calls that NCCL cannot, on copies in pinned host
// memory, with the bits that it always gives:
//
//   - all calls, if some rank has no NCCL
//   - reductions under collective.RingOrder, because NCCL folds in orders of its own
//   - means of integers, which are exact here
//   - calls with one vector in host memory
//   - Send, Recv and SendRecv in a Sub, until NCCL has carried out a call of all its ranks,
//     which connects them
//
// All ranks must choose the same way: a vector in device memory on one rank must be in
// device memory on all.
//
// Under collective.AnyOrder NCCL reduces. All ranks get the same sums, but another number
// of ranks, another version of NCCL or another machine may give other bits. For a mean
// NCCL multiplies by 1/size before it adds. Its minimum and maximum ignore a NaN if
// another rank has a number.
//
// NCCL's own connections between hosts are neither encrypted nor authenticated, whatever
// the host engine's are.
//
// # Captures and concurrent work
//
// A Group's calls wait on the host, so they cannot be captured. [Engine.Queue] puts a
// call on the stream and waits for nothing, so it can. [Engine.Queued] takes any stream,
// so that calls overlap with work on other streams. Nothing compares such calls between
// ranks.
//
// [Engine.Broken] is closed when the communicator has been aborted. The stream then
// continues with garbage in the vectors; Config.Breaking is called before that. On other
// ranks, too, NCCL may end the call with garbage, before their engines break: a kernel of
// NCCL that is aborted does not wait, but sends what is in its buffers. A Group's calls
// detect that, because the ranks meet again after each. For calls of Queue the caller must,
// for example with a second call in which ranks vote on the first (nn.Committer).
//
// NCCL keeps an aborted communicator until the graphs that contain its calls are destroyed.
// Their owner destroys them then, and before Close in any case. No call waits
// for it.
package ncclgroup
