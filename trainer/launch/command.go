package launch

import "time"

// A Command describes one worker process.
type Command struct {
	Name string   // what reports call it, such as "worker 2"; Path if empty
	Path string   // the program: a path, or a name looked up in PATH
	Args []string // arguments, without the program's own name
	Env  []string // "key=value", added to the launcher's environment; the last value of a key wins
	Dir  string   // working directory; the launcher's if empty

	// Stdout and Stderr receive the worker's output line by line, in order and without
	// line ends, including an unterminated last line. They are never called concurrently
	// for the same worker, but may be for different workers. A line longer than
	// Options.MaxLine arrives in pieces of that size. The slice is valid only during the
	// call. If a call blocks, the worker's writes block once the pipe is full, and so
	// does Wait. They may be nil.
	Stdout, Stderr func(line []byte)

	// Spare, if not nil, is asked about a failure of this worker that the job did not ask
	// for, while the job is running. If it returns true, the job continues without the
	// worker. It must not call the Job.
	Spare func(Exit) bool

	// place runs start where the worker should live, such as in a network namespace;
	// nil means here.
	place func(start func() error) error
}

// Options sets the timeouts of a Job. A zero field means its default; a negative
// time means 0.
type Options struct {
	// Grace is how long the other workers may run after the first failure, to notice and
	// report it and exit on their own. Default 10 s.
	Grace time.Duration
	// Term is the time between SIGTERM and SIGKILL. Default 10 s.
	Term time.Duration
	// Window is how long after the first failure a death by signal still counts as its
	// cause. Survivors may exit before the launcher sees the end of a process whose
	// memory takes long to tear down. Default 2 s.
	Window time.Duration
	// Tail is the number of last lines of stderr that an Exit keeps. Default 20.
	Tail int
	// MaxLine is the longest line of output, in bytes. Default 64 KiB.
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

func orDefault(d, fallback time.Duration) time.Duration {
	switch {
	case d == 0:
		return fallback
	case d < 0:
		return 0
	}
	return d
}
