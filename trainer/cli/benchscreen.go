package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/ringtrain/ringtrain/bench"
	"github.com/ringtrain/ringtrain/collective/calibration"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// A benchScreen prints the table of "bench collective" row by row and keeps the rows. Any
// goroutine may use it.
type benchScreen struct {
	crew.Lines // to stderr

	out       io.Writer // keeps its own failures, see output
	spec      bench.Spec
	transport string
	node      string             // this machine's name; "" where there is no other
	about     string             // more about the links, for the table; "" for nothing
	choices   calibration.Report // zero if no memory is shared

	mu    sync.Mutex
	table bench.Table
	rows  []bench.Row
	away  bool // the table is another machine's
}

// Emit is part of event.Sink.
func (s *benchScreen) Emit(e event.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e := e.(type) {
	case *event.View:
		s.view(e)
	case *bench.RowMeasured:
		s.rows = append(s.rows, e.Row)
		if !s.away {
			_ = s.table.Row(s.out, e.Row)
		}
	case *bench.Calibrated:
		s.choices = e.Report
	case *event.Tuned:
		fmt.Fprintf(s.out, "# %v\n", e)
	}
}

// view begins the table, on the machine of rank 0.
func (s *benchScreen) view(e *event.View) {
	if s.node != "" && len(e.Members) > 0 && e.Members[0].Node != s.node {
		s.away = true
		s.Log("", fmt.Appendf(nil, "measuring with %d ranks; the table is printed on %s, which has rank 0", len(e.Members), e.Members[0].Node))
		return
	}
	names := make([]string, len(e.Members))
	for i, m := range e.Members {
		names[i] = m.Name
		if m.Addr != "" {
			names[i] += " at " + m.Addr
		}
	}
	s.transport = cmp.Or(e.Transport, s.transport)
	if e.Device != "" {
		fmt.Fprintf(s.out, "# vectors on %s\n", e.Device)
	}
	if s.choices.Ranks > 0 {
		fmt.Fprintf(s.out, "# shared memory: %v\n", s.choices)
	}
	if s.about != "" {
		fmt.Fprintf(s.out, "# %s\n", s.about)
	}
	_ = s.table.Header(s.out, s.spec, s.transport, names)
}

// end completes the table and returns its rows.
func (s *benchScreen) end() []bench.Row {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.away {
		_ = s.table.Footer(s.out)
	}
	return s.rows
}

// write writes the requested files.
func (f benchFiles) write(records []bench.Record) error {
	return errors.Join(
		bench.WriteTo(f.json, func(w io.Writer) error { return bench.WriteJSON(w, records) }),
		bench.WriteTo(f.csv, func(w io.Writer) error { return bench.WriteCSV(w, records) }),
		bench.WriteTo(f.plot, func(w io.Writer) error {
			format, err := bench.PlotFormat(f.plot)
			if err != nil {
				return err
			}
			return bench.Plot(w, format, records)
		}),
	)
}
