package trace

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// An eventFile is the file of a Chrome trace: an array of events, one per line. Every
// flush also writes the end of the array, which the next flush overwrites, so the file of
// a killed process is valid up to the last flush.
type eventFile struct {
	mu   sync.Mutex // the caller of put and flush holds it
	w    io.WriterAt
	at   int64  // offset of the next events, which overwrite the array's end
	held []byte // events not yet flushed
	err  error
}

const (
	traceEnd  = "\n]\n"
	mostHeld  = 64 << 10 // bytes
	nextEvent = ",\n"
)

// event is an event in the format of
// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
type event struct {
	Name    string         `json:"name"`
	Phase   string         `json:"ph"`
	Process int            `json:"pid"`
	Row     int            `json:"tid"`
	At      float64        `json:"ts"` // microseconds of Unix time
	Took    float64        `json:"dur,omitempty"`
	Args    map[string]any `json:"args,omitempty"`
}

// put adds an event.
func (f *eventFile) put(e event) {
	b, err := json.Marshal(e)
	if err != nil {
		f.err = err
		return
	}
	between := nextEvent
	if len(f.held) == 0 && f.at == 0 {
		between = "[\n"
	}
	f.held = append(append(f.held, between...), b...)
	if len(f.held) >= mostHeld {
		f.flush()
	}
}

// flush writes the pending events and the end of the array in a single write.
func (f *eventFile) flush() {
	if f.err == nil && len(f.held) > 0 {
		_, f.err = f.w.WriteAt(append(f.held, traceEnd...), f.at)
		f.at += int64(len(f.held))
	}
	f.held = f.held[:0]
}

// close writes the remaining events and returns the first write error.
func (f *eventFile) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.flush()
	if f.err != nil {
		return fmt.Errorf("trace: %w", f.err)
	}
	return nil
}
