// Package crew starts and supervises the workers of a job on this machine. It also
// implements the worker's side.
//
// A worker process is this program, started again with the same arguments and with
// its place in the environment ([Crew.Launch], start.go). [ThisProcess] is the only
// function that decides whether a process is a launcher or a worker, and
// [Process.Run] runs its part. A worker ([Worker], worker.go) finds the others, tells its launcher what
// happens as events on stdout, and ends with its launcher.
//
// The first failure ends all workers. The user is told once about a lost rank, however
// many survivors report it (lost.go). Workers that were asked to stop may take as long
// as they make progress ([Pulse], vigil.go).
//
// [InProcess] runs ranks as goroutines of this process instead.
//
// Nothing here exits, logs or prints, except to a [Display] and to the writers that
// it is given.
package crew
