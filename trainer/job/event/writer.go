package event

import (
	"io"
	"sync"
	"time"
)

// A Writer is a Sink that writes events as JSON, one per line.
type Writer struct {
	delay time.Duration // of steps

	mu    sync.Mutex
	w     io.Writer
	held  []byte
	timer *time.Timer // nil if nothing is held
}

// NewWriter returns a Writer to w. It ignores the errors of w. It holds steps back for up
// to delay and writes them together, because each write wakes the reader on the cores
// that the next steps need. Call Flush after the last event.
func NewWriter(w io.Writer, delay time.Duration) *Writer {
	return &Writer{w: w, delay: delay}
}

// Emit implements Sink. Events other than steps are written at once.
func (j *Writer) Emit(e Event) {
	line := Encode(e)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.held = append(append(j.held, line...), '\n')
	if _, step := e.(*Step); !step || j.delay == 0 {
		j.write()
	} else if j.timer == nil {
		j.timer = time.AfterFunc(j.delay, j.Flush)
	}
}

// Flush writes the steps that are held back.
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
