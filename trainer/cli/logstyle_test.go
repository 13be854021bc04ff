package cli

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// The lines of the notebooks, byte for byte. The last evaluation is the result's.
func TestLogStyles(t *testing.T) {
	accuracy := func(v float64) event.Metrics { return event.Metrics{{Name: "accuracy", Value: v}} }
	for style, want := range map[string]string{
		"thinc": "0 \taccuracy: 0.112\n20 \taccuracy: 0.501\nFinal \taccuracy: 0.561\n",
		"ray":   "Iter 0: \taccuracy is 11.2\nIter 20: \taccuracy is 50.1\nFinal accuracy is 56.1.\n",
	} {
		var out, errs bytes.Buffer
		s := &screen{out: &out, err: &errs, steps: 40, style: logStyles[style]}
		for _, e := range []event.Event{
			&event.Step{Step: 1}, &event.Eval{Step: 1, Metrics: accuracy(.1123)}, &event.Step{Step: 21}, &event.Eval{Step: 21, Metrics: accuracy(.501)},
			&event.Step{Step: 40}, &event.Eval{Step: 40, Metrics: accuracy(.561)}, &event.Result{Steps: 40, Metrics: accuracy(.561)},
		} {
			s.Emit(e)
		}
		require.Equal(t, want, out.String())
		require.Empty(t, errs.String())
	}
	require.Equal(t, "7 \tloss: 0.250", logStyles["thinc"].row(7, nil, .25))
}
