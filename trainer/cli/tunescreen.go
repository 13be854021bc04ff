package cli

import (
	"fmt"
	"io"
	"sync"

	"github.com/ringtrain/ringtrain/bench"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// A tuneScreen prints the table of "tune" row by row. Any goroutine may use it.
type tuneScreen struct {
	crew.Lines // to stderr

	out io.Writer // keeps its own failures, see output

	mu    sync.Mutex
	begun bool
}

// Emit is part of event.Sink.
func (s *tuneScreen) Emit(e event.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e := e.(type) {
	case *bench.Calibrated:
		fmt.Fprintf(s.out, "shared memory: %v\n", e.Report)
	case *bench.SizeTuned:
		s.row(e.Tuned)
	case *bench.TableSaved:
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
