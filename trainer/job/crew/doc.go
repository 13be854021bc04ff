// Package crew starts and supervises the workers of one job on this machine, and
// is the other side of that in each worker.
//
// A worker process is this program, started again with the same arguments and its
// place in the environment ([Crew.Launch], start.go). [ThisProcess] is the one
// function that decides which of the two a process is, and [Process.Run] runs its
// part. A worker ([Worker], worker.go) finds the others, tells its launcher what
// happens as events on stdout, and ends with its launcher.
//
// The first failure ends all workers. What survivors say about a lost rank reaches
// the user once (lost.go). Workers that were asked to stop have as long as they
// make progress ([Pulse], vigil.go).
//
// [InProcess] runs ranks as goroutines of this process instead.
//
// Nothing here exits, logs or prints, except to a [Display] and to the writers that
// it is given.
package crew
