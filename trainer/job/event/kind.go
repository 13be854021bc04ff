package event

// An Event is a pointer to one of the structs of this package, or of another that
// gives Decode a Table. Its exported fields are its JSON.
type Event interface {
	// Kind is the value of "event" in the JSON object.
	Kind() string
}

// A Sink receives the events of a job, from any goroutine.
type Sink interface {
	Emit(e Event)
}

// Kind is part of Event.
func (*View) Kind() string { return "view" }

// Kind is part of Event.
func (*Step) Kind() string { return "step" }

// Kind is part of Event.
func (*Eval) Kind() string { return "eval" }

// Kind is part of Event.
func (*Lost) Kind() string { return "peer_lost" }

// Kind is part of Event.
func (*Weights) Kind() string { return "weights" }

// Kind is part of Event.
func (*CheckpointFailed) Kind() string { return "checkpoint_failed" }

// Kind is part of Event.
func (*SaveRetry) Kind() string { return "save_retry" }

// Kind is part of Event.
func (*SaveWait) Kind() string { return "save_wait" }

// Kind is part of Event.
func (*Resumed) Kind() string { return "resumed" }

// Kind is part of Event.
func (*Checkpoint) Kind() string { return "checkpoint" }

// Kind is part of Event.
func (*Switched) Kind() string { return "switched" }

// Kind is part of Event.
func (*Stopped) Kind() string { return "stopped" }

// Kind is part of Event.
func (*Result) Kind() string { return "result" }

// Kind is part of Event.
func (*Staleness) Kind() string { return "staleness" }

// Kind is part of Event.
func (*Target) Kind() string { return "target" }

// Kind is part of Event.
func (*Ready) Kind() string { return "ready" }

// Kind is part of Event.
func (*Regrouped) Kind() string { return "regrouped" }

// Kind is part of Event.
func (*Progress) Kind() string { return "progress" }

// Kind is part of Event.
func (*Failed) Kind() string { return "failed" }

// Kind is part of Event.
func (*Tuned) Kind() string { return "tuned" }
