package event

import (
	"io"
	"sync"
	"time"
)

// A Writer is a Sink that writes events as JSON, one per line.
type Writer struct {
	patience time.Duration

	mu    sync.Mutex
	w     io.Writer
	held  []byte
	timer *time.Timer // runs while something is held
}

// NewWriter writes to w, which keeps its own failures. It holds steps back for up
// to patience and writes them together: each write wakes the reader, on the cores
// that the next steps need. Call Flush after the last event.
func NewWriter(w io.Writer, patience time.Duration) *Writer {
	return &Writer{w: w, patience: patience}
}

// Emit writes an event. It is part of Sink.
func (j *Writer) Emit(e Event) {
	line := Encode(e)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.held = append(append(j.held, line...), '\n')
	if _, step := e.(*Step); !step || j.patience == 0 {
		j.write()
	} else if j.timer == nil {
		j.timer = time.AfterFunc(j.patience, j.Flush)
	}
}

// Flush writes what is held.
func (j *Writer) Flush() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.write()
}

func (j *Writer) write() {
	if j.timer != nil {
		j.timer.Stop()
		j.timer = nil
	}
	if len(j.held) > 0 {
		_, _ = j.w.Write(j.held)
		j.held = j.held[:0]
	}
}
