// Package bench measures collective operations and judges their results. Its
// sweep, its columns and its table are those of NVIDIA's nccl-tests, so that
// numbers can be set side by side and programs that read the one read the
// other.
//
// # The columns
//
// size is S, the bytes of the larger of what one rank gives and what it gets:
// the vector for allreduce and broadcast, all ranks' parts together for
// allgather. count is the elements that one rank gives to one call. A size
// that is not a whole number of elements for each rank is rounded down, to one
// element at least, and sizes that become equal are measured once.
//
// time is the median over the iterations, in microseconds. An iteration fills
// the buffer, meets the other ranks at a barrier, makes the call, which alone
// is timed, and reads the result, so memory is as warm as it is in training.
// Every rank times for itself and the slowest counts. p99 is the time that 99
// of 100 iterations kept (nearest rank: the longest when there are fewer than
// 100), iters is how many there were.
//
// algbw is S/t in units of 1e9 bytes a second: how fast the caller's data were
// dealt with. It falls as ranks are added even where no wire is slower. busbw
// corrects that: algbw times the number of bytes that must leave (or enter)
// the busiest rank for each byte of S, whatever the algorithm. It can be
// compared with the speed of a link, and with other numbers of ranks n:
//
//   - allreduce, 2(n-1)/n: reducing n vectors to one takes n-1 additions for
//     each element, so n-1 operands must travel; giving the sums to the other
//     n-1 ranks takes as many. Of these 2(n-1)S bytes each rank sends at least
//     its share, an n-th.
//   - allgather, reducescatter and alltoall, (n-1)/n: everybody has an n-th
//     of S already and must get, or give away, the rest.
//   - broadcast, 1: the root sends every byte at least once.
//   - sendrecv, 1: every byte leaves once and another arrives.
//
// "out-of-place" calls find the input in other memory than the result. Where
// the library's own call works in place only (allreduce, broadcast) the copy is
// part of the time. "in-place" is what a trainer calls, and what JSON, CSV and
// plot show where there is one.
//
// #wrong counts elements of the result that were not the ones expected, over
// all ranks and timed iterations. Inputs are small whole numbers whose sums are
// exact in every type (of bfloat16, which has 8 bits for them, the smaller the
// more ranks there are), and units and twos for products, so there is exactly
// one right answer and no tolerance.
//
// # Scaling
//
// [Scaling] is other tables: whole trainings by more and more workers, the time,
// its growth T(N)/T(1), the speedup T(1)/T(N) and the scalability N*T(1)/T(N),
// with three plots; and, if asked for, the figures that were published of other
// programs ([PublishedScaling]), in a table of their own.
// [Emulate] stands in for compute that a machine does not have, and [Traffic]
// knows from the calls alone what was sent.
package bench
