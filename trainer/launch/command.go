package launch

import "time"

// A Command describes one worker process.
type Command struct {
	Name string   // how reports call it, such as "worker 2"; Path if empty
	Path string   // the program: a path, or a name looked up in PATH
	Args []string // its arguments, without the program's own name
	Env  []string // "key=value", added to the launcher's environment; the last of equal keys wins
	Dir  string   // working directory; the launcher's if empty

	// Stdout and Stderr receive the worker's output line by line, in order and
	// without the line end; what follows the last line end comes too. The two
	// are never called concurrently for one worker, but are for different
	// workers. A line longer than Options.MaxLine arrives in pieces of that
	// size. The slice is valid only during the call. A call that blocks
	// holds up the worker's writes once the pipe is full, and Wait. May be nil.
	Stdout, Stderr func(line []byte)

	// place carries out the start where the worker is to be; nil for here.
	place func(start func() error) error
}

// Options set the patience of a Job. The zero value of a field means its
// default; a negative time means none.
type Options struct {
	// Grace is how long the others may go on after the first failure, to notice
	// it, report it and leave by themselves. Default 10 s.
	Grace time.Duration
	// Term is how long a worker may go on after SIGTERM, before SIGKILL.
	// Default 10 s.
	Term time.Duration
	// Window is how long after the first failure a death by signal still counts
	// as the cause of it: survivors may exit before the launcher sees the end
	// of a process whose memory takes long to tear down. Default 2 s.
	Window time.Duration
	// Tail is how many of the last lines of stderr an Exit keeps. Default 20.
	Tail int
	// MaxLine bounds one line of output, in bytes. Default 64 KiB.
	MaxLine int
}

func (o Options) withDefaults() Options {
	o.Grace = orDefault(o.Grace, 10*time.Second)
	o.Term = orDefault(o.Term, 10*time.Second)
	o.Window = orDefault(o.Window, 2*time.Second)
	if o.Tail <= 0 {
		o.Tail = 20
	}
	if o.MaxLine <= 0 {
		o.MaxLine = 64 << 10
	}
	return o
}

func orDefault(d, otherwise time.Duration) time.Duration {
	switch {
	case d == 0:
		return otherwise
	case d < 0:
		return 0
	}
	return d
}
