package event

import (
	"encoding/json"
	"fmt"
	"sync"
)

// A Table makes an empty event of each kind, for Decode.
type Table map[string]func() Event

// TableOf returns the Table of the events that constructors return.
func TableOf(constructors ...func() Event) Table {
	t := Table{}
	for _, make := range constructors {
		t[make().Kind()] = make
	}
	return t
}

// Encode returns an event as a JSON object on one line, without the newline. If the event
// has a number that JSON cannot express, such as a NaN loss, the result is an event of
// kind "invalid" with the reason.
func Encode(e Event) []byte {
	fields, err := json.Marshal(e)
	if err != nil {
		return fmt.Appendf(nil, `{"event":"invalid","error":%q}`, err.Error())
	}
	line := fmt.Appendf(nil, `{"event":%q`, e.Kind())
	if string(fields) != "{}" {
		line = append(line, ',')
	}
	return append(line, fields[1:]...)
}

// Decode parses a line that Encode returned. The event is of a kind of this package or
// of more. For any other line Decode returns nil.
func Decode(line []byte, more Table) Event {
	var kind struct {
		Event string `json:"event"`
	}
	if json.Unmarshal(line, &kind) != nil {
		return nil
	}
	make, ok := kinds()[kind.Event]
	if !ok {
		make, ok = more[kind.Event]
	}
	if !ok {
		return nil
	}
	e := make()
	if json.Unmarshal(line, e) != nil {
		return nil
	}
	return e
}

// kinds returns the Table of this package.
var kinds = sync.OnceValue(func() Table {
	return TableOf(
		func() Event { return new(View) },
		func() Event { return new(Step) },
		func() Event { return new(Eval) },
		func() Event { return new(Lost) },
		func() Event { return new(Weights) },
		func() Event { return new(CheckpointFailed) },
		func() Event { return new(SaveRetry) },
		func() Event { return new(SaveWait) },
		func() Event { return new(Resumed) },
		func() Event { return new(Checkpoint) },
		func() Event { return new(Switched) },
		func() Event { return new(Stopped) },
		func() Event { return new(Staleness) },
		func() Event { return new(Target) },
		func() Event { return new(Result) },
		func() Event { return new(Ready) },
		func() Event { return new(Regrouped) },
		func() Event { return new(Progress) },
		func() Event { return new(Failed) },
		func() Event { return new(Tuned) },
	)
})
