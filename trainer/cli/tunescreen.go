package cli

import (
	"fmt"
	"io"
	"sync"

	"github.com/ringtrain/ringtrain/bench"
)

// tunedSizeEvent is what was measured of one size.
type tunedSizeEvent struct {
	Event string      `json:"event"` // "tuned_size"
	Tuned bench.Tuned `json:"tuned"`
}

// tuneSavedEvent is written when the table is on disk.
type tuneSavedEvent struct {
	Event string `json:"event"` // "tune_saved"
	Path  string `json:"path"`
}

// A tuneScreen shows a run of "tune" as a table that grows. It may be used from
// any goroutine.
type tuneScreen struct {
	out, err io.Writer // out keeps its own failures, see output

	mu    sync.Mutex
	begun bool
}

// emit shows an event.
func (s *tuneScreen) emit(event any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e := event.(type) {
	case *tunedSizeEvent:
		s.row(e.Tuned)
	case *tuneSavedEvent:
		fmt.Fprintf(s.out, "saved to %s\n", e.Path)
	}
}

func (s *tuneScreen) row(t bench.Tuned) {
	if !s.begun {
		s.begun = true
		fmt.Fprintf(s.out, "%10s  %-16s  %10s  %12s  %12s  %s\n", "size (B)", "fastest", "segment (B)", "predicted us", "measured us", "next")
	}
	best, next := t.Ways[0], ""
	for _, w := range t.Ways[1:] {
		if w.Method != best.Method {
			next = fmt.Sprintf("%v %.1f", w.Method, w.Measured)
			break
		}
	}
	fmt.Fprintf(s.out, "%10d  %-16s  %11d  %12.1f  %12.1f  %s\n", t.Bytes, best.Method, best.Segment, best.Predicted, best.Measured, next)
}

// log shows a line that a worker has for the user.
func (s *tuneScreen) log(name string, line []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name != "" {
		name = "[" + name + "] "
	}
	fmt.Fprintf(s.err, "%s%s\n", name, line)
}

func (s *tuneScreen) notice(text string) { fmt.Fprintln(s.err, text) }
