// Package launch starts, watches and ends the worker processes of one job on
// this machine.
//
// A [Job] owns its processes. Each runs in a process group of its own, so that
// whatever a worker started ends with it, and so that a Ctrl-C at the terminal
// reaches the launcher alone, which then decides. The first failure begins the
// end: the other workers get a grace period in which they notice, report and
// leave by themselves, then SIGTERM, then SIGKILL. [Job.Wait] returns when
// nothing is left, and its [Outcome] names the root cause: a worker killed by a
// signal comes before those that exited a moment earlier because it was gone.
//
// A launcher may die too, by kill -9 or out of memory. Every worker therefore
// inherits a lifeline, the read end of a pipe whose only writer is the
// launcher; see [Lifeline] for the worker's side. On Linux the kernel moreover
// kills a worker the moment its launcher is gone, and on Windows a job object
// does, so the lifeline is what reaches the processes behind a wrapper such as
// a shell, and every worker on the other systems.
//
// On Linux a job can be spread over a [Network]: network namespaces that stand
// for machines, with links as slow as wanted. See [Namespaces].
//
// A program that looks on finds the jobs of its user by [Register] and
// [Listings]. What is written down about a process names it by its [Identity],
// because its number is used again.
//
// Who is told to end, when, and who is to blame is decided by a state machine
// that knows neither processes nor clocks (watch.go, outcome.go); one goroutine
// per job (job.go) feeds it with what happens and carries out its orders.
package launch
