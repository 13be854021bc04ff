// Package launch starts, watches and ends the worker processes of one job on
// this machine.
//
// A [Job] owns its processes. Each runs in its own process group. Whatever a worker
// started therefore ends with it, and a Ctrl-C at the terminal reaches only the launcher,
// which decides what to do. After the first failure the other workers get a grace period
// in which to notice, report and exit on their own, then SIGTERM, then SIGKILL.
// [Job.Wait] returns when no process is left, and its [Outcome] names the root cause: a
// worker killed by a signal takes precedence over workers that exited a moment earlier
// because they lost it.
//
// A launcher may die too, by kill -9 or from lack of memory. Every worker therefore
// inherits a lifeline, the read end of a pipe whose only writer is the launcher;
// [Lifeline] is the worker's side of it. In addition the kernel kills workers as soon as
// their launcher is gone, on Linux, and a job object does so on Windows. The lifeline
// covers processes behind a wrapper such as a shell, and all workers on other systems.
//
// On Linux a job can run in a [Network]: network namespaces that act as machines, with
// links of any speed. See [Namespaces].
//
// Other programs find the jobs of their user with [Listings], because jobs call
// [Register]. Records identify a process by its [Identity], because process ids
// are reused.
//
// A state machine without processes and clocks decides which workers must end, when, and
// which one is the root cause (watch.go, outcome.go). One goroutine per job (job.go)
// feeds it events and carries out its orders.
package launch
