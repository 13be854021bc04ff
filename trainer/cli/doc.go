// Package cli is the ringtrain command as a library: [Main] runs one command
// line and returns the exit code, so a program with layers of its own is a
// catalog and one call.
//
// "train" is two programs. The one that the user starts checks everything that
// can be checked, starts the workers and shows what they say (launcher.go,
// screen.go). Each worker is the same command line with its place in the
// environment; it finds the others, trains, and says what happens as events,
// one JSON object a line (worker.go, rank.go, event.go). "bench
// collective" is made in the same way (benchcmd.go, benchrun.go,
// benchscreen.go). "doctor" asks one of its kind on another machine by a
// protocol of its own (collective/query).
package cli
