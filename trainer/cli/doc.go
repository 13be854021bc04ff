// Package cli is the ringtrain command as a library: [Main] runs one command
// line and returns the exit code, so a program with layers of its own is a
// catalog and one call.
//
// It holds flags, commands and screens. What a process is in a job, launcher or
// worker, is decided by package trainer/job/crew, which starts the workers and
// tells a screen what they say. Each worker is the same command line with its
// place in the environment.
package cli
