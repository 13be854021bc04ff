package trace

import (
	"io"
	"time"
)

// A Timeline is a Chrome trace with one row for each of several workers. Its file is
// valid after every call.
type Timeline struct{ file eventFile }

// An Activity is what a worker did for some time. Those of a worker do not overlap.
type Activity struct {
	Worker int // from 0
	Name   string
	Began  time.Time
	Took   time.Duration
	Args   map[string]any // shown with it; must be valid JSON
}

// NewTimeline starts a trace in an empty file. names are those of the workers.
func NewTimeline(w io.WriterAt, names ...string) *Timeline {
	t := &Timeline{file: eventFile{w: w}}
	t.file.mu.Lock()
	defer t.file.mu.Unlock()
	for i, name := range names {
		t.file.put(event{Name: "thread_name", Phase: "M", Row: i, Args: map[string]any{"name": name}})
		t.file.put(event{Name: "thread_sort_index", Phase: "M", Row: i, Args: map[string]any{"sort_index": i}})
	}
	t.file.flush()
	return t
}

// Add writes activities.
func (t *Timeline) Add(activities ...Activity) {
	t.file.mu.Lock()
	defer t.file.mu.Unlock()
	for _, a := range activities {
		t.file.put(event{Name: a.Name, Phase: "X", Row: a.Worker, At: micros(a.Began), Took: us(a.Took), Args: a.Args})
	}
	t.file.flush()
}

// Close returns the first write error. The file stays the caller's.
func (t *Timeline) Close() error { return t.file.close() }
