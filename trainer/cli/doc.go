// Package cli is the ringtrain command as a library: [Main] runs one command
// line and returns the exit code, so a program with layers of its own is a
// catalog and one call.
//
// It holds flags, commands and screens. Package trainer/job/crew decides whether a process
// is a launcher or a worker (ThisProcess), starts the workers (startWorker), and passes
// their events to a screen. A worker has the same command line as its launcher, and its
// place in the environment; runWorker is its side.
package cli
