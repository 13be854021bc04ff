package cli

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// The last line of a run with --until says after how much training it ended. With a
// notebook's lines it goes to stderr.
func TestTargetLine(t *testing.T) {
	reached := &event.Target{Metric: "accuracy", Target: .95, Reached: true, Value: .9525, Step: 230, Samples: 58880, Seconds: 1.2345}
	for _, c := range []struct {
		target *event.Target
		stale  bool
		want   string
	}{
		{reached, false, "target: accuracy 0.9525 reached 0.95 after 230 steps, 58880 samples and 1.23 s"},
		{reached, true, "target: accuracy 0.9525 reached 0.95 after 230 updates, 58880 samples and 1.23 s"},
		{&event.Target{Metric: "loss", Target: .1}, false, "target: loss has not reached 0.1"},
	} {
		for name, style := range logStyles {
			var out, errs bytes.Buffer
			s := &screen{out: &out, err: &errs, steps: 500, style: style}
			s.Emit(&event.Step{Step: 230})
			if c.stale {
				s.Emit(&event.Staleness{})
			}
			s.Emit(c.target)
			s.Emit(&event.Result{Steps: 230, Compress: "none"})
			last := out.String()
			if name != "table" && name != "spacy" {
				last = errs.String()
			}
			require.Regexp(t, `(^|\n)`+c.want+"\n$", last, name)
		}
	}
}
