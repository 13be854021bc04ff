// Package bench measures collective operations and checks their results. Its sweep,
// columns and table are those of NVIDIA's nccl-tests, so you can compare figures, and
// programs that read the output of one can read the other's.
//
// # The columns
//
// size is S, the bytes of the larger of what one rank gives and gets: the vector for
// allreduce, broadcast, reduce and sendrecv, and the parts of all ranks together for the
// others. count is the number of elements of one part, as in nccl-tests: the whole
// vector, or an n-th of S for the others, among n ranks. A size that is not a whole
// number of elements for each rank is rounded down, to at least one element. Sizes that
// become equal are measured once.
//
// time is the median over the iterations, in microseconds. An iteration fills the
// buffer, meets the other ranks at a barrier, makes the call, and reads the result,
// so memory is as warm as in training. Only the call is timed. Every rank times
// itself, and the slowest counts. p99 is the time within which 99 of 100 iterations
// finished (nearest rank: the longest if there are fewer than 100). iters is the
// number of iterations.
//
// algbw is S/t in units of 1e9 bytes per second: how fast the caller's data were
// processed. It falls with the number of ranks even if no link is slower. busbw
// corrects that. It is algbw times the number of bytes that the busiest rank must
// send (or receive) for each byte of S, whatever the algorithm. You can compare it
// with the speed of a link, and between numbers of ranks n:
//
//   - allreduce, 2(n-1)/n: reducing n vectors to one takes n-1 additions per element,
//     so n-1 operands must travel, and the sums must travel to the other n-1 ranks.
//     Of these 2(n-1)S bytes each rank sends at least its share, an n-th.
//   - allgather, reducescatter and alltoall, (n-1)/n: each rank has an n-th of S
//     already and must get, or give away, the rest.
//   - gather and scatter, (n-1)/n: the same holds for the root.
//   - broadcast and reduce, 1: the root sends, or gets, every byte at least once.
//   - sendrecv, 1: every byte leaves once and another arrives.
//
// "out-of-place" calls have input and result in different memory. If the library's
// own call works only in place (allreduce, broadcast), the time includes the copy.
// "in-place" is what a trainer calls, and what JSON, CSV and plot show if there is
// one.
//
// #wrong counts elements of the result that are not the expected ones, over all ranks
// and timed iterations. Inputs are small whole numbers whose sums are exact in every
// type. In bfloat16, which has 8 bits for them, they are smaller if there are more ranks.
// For products they are 1, -1 and 2. So there is exactly one correct result and no
// tolerance.
//
// # Scaling
//
// [Scaling] has other tables, of whole runs with more and more workers: the time,
// its growth T(N)/T(1), the speedup T(1)/T(N) and the scalability N*T(1)/T(N), with
// three plots. On request it adds the published figures of other programs
// ([PublishedScaling]), in a table of their own. [Emulate] replaces compute that a
// machine does not have.
package bench
