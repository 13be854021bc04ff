// Package crew starts and supervises the workers of a job on this machine. It also
// implements the worker's side.
//
// A worker process is this program, started again with the same arguments and with
// its place in the environment. From the command line to that process:
//
//	Process.Run     process.go       launcher or worker? ThisProcess has decided
//	Crew.Launch     launcher.go      the launcher: start the workers, wait, report
//	startWorker     startworker.go   starts one worker process
//	runWorker       worker.go        the worker process, from its start to its end
//
// A [Worker] finds the others, sends events to its launcher on stdout, and ends with
// its launcher.
//
// The first failure ends all workers. A lost rank is reported to the user once, however
// many survivors report it (lost.go). Workers that were asked to stop may take as long
// as they make progress ([Pulse], watchdog.go).
//
// [InProcess] runs ranks as goroutines of this process instead.
//
// If a job has servers, a lost one need not end it: its launcher starts it again
// (restart.go), and the workers form a new group with it ([Partners], regroup.go). Nor need a
// lost worker, if the others can continue without it (survivors.go).
//
// Nothing here exits, logs or prints, except to a [Display] and to the writers that
// it is given.
package crew
