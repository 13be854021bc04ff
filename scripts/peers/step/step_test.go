package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Every program in Go trains every model. After a few steps the losses have fallen, and
// those of one model are similar.
func TestProgramsTrainAlike(t *testing.T) {
	if testing.Short() {
		t.Skip("draws digits and trains on them")
	}
	file := filepath.Join(t.TempDir(), "batches")
	var out, errs bytes.Buffer
	require.Equal(t, 0, run([]string{"batches", file}, &out, &errs), errs.String())
	for model, programs := range map[string][]string{
		"mlp":     {"ringtrain", "gorgonia"},
		"convnet": {"ringtrain", "gorgonia"},
	} {
		var last []float64
		for _, program := range programs {
			out.Reset()
			require.Equal(t, 0, run([]string{program, model, file, "20"}, &out, &errs), errs.String())
			var r record
			require.NoError(t, json.Unmarshal(out.Bytes(), &r))
			require.Equal(t, model, r.Model)
			require.Equal(t, 20, r.Steps)
			require.Positive(t, r.Least)
			require.LessOrEqual(t, r.Least, r.Median)
			require.InDelta(t, 2.35, r.First, .1, program)
			require.Less(t, r.Last, .8*r.First, program)
			require.NotEmpty(t, r.About)
			last = append(last, r.Last)
		}
		for _, l := range last {
			require.InEpsilon(t, last[0], l, .3, "%s: %v", model, last)
		}
	}
}

func TestNoBatches(t *testing.T) {
	file := filepath.Join(t.TempDir(), "batches")
	require.NoError(t, os.WriteFile(file, make([]byte, 100), 0o600))
	var out, errs bytes.Buffer
	require.Equal(t, 1, run([]string{"ringtrain", "mlp", file}, &out, &errs))
	require.Contains(t, errs.String(), "batches: unexpected EOF; make it with step batches")
}

// Warm-up steps do not count, but the first loss is that of the very first step.
func TestClock(t *testing.T) {
	c := newClock(3)
	require.Equal(t, warmUp+3, c.steps)
	for i := range warmUp {
		c.add(time.Hour, float64(100-i))
	}
	for _, us := range []int{30, 10, 20} {
		c.add(time.Duration(us)*time.Microsecond, 2)
	}
	r := c.record()
	require.Equal(t, record{Median: 20, Least: 10, Steps: 3, First: 100, Last: r.Last}, r)
	require.Greater(t, r.Last, 2., "the mean of the last 20")
	require.Less(t, r.Last, 87.)
}
