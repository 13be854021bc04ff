package event

import (
	"encoding/json"
	"fmt"
	"sync"
)

// A Table makes an empty event of each kind, for Decode.
type Table map[string]func() Event

// TableOf is a Table of the kinds of events that constructors return.
func TableOf(constructors ...func() Event) Table {
	t := Table{}
	for _, make := range constructors {
		t[make().Kind()] = make
	}
	return t
}

// Encode is an event as a JSON object on one line, without the newline. A number
// that JSON does not have, such as a loss that is not finite, makes it an event of
// the kind "invalid" that says so.
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

// Decode reads a line that Encode made, of a kind of this package or of more. It
// returns nil for any other line.
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

// kinds are those of this package.
var kinds = sync.OnceValue(func() Table {
	return TableOf(
		func() Event { return new(View) },
		func() Event { return new(Step) },
		func() Event { return new(Eval) },
		func() Event { return new(Lost) },
		func() Event { return new(Weights) },
		func() Event { return new(CheckpointFailed) },
		func() Event { return new(SaveRetry) },
		func() Event { return new(Resumed) },
		func() Event { return new(Checkpoint) },
		func() Event { return new(Stopped) },
		func() Event { return new(Result) },
		func() Event { return new(Ready) },
		func() Event { return new(Progress) },
		func() Event { return new(Failed) },
		func() Event { return new(Tuned) },
	)
})
