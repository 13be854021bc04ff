package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// The progress bar on terminals of several widths.
func TestProgressLine(t *testing.T) {
	p := progress{done: 46, steps: 200, elapsed: 4 * time.Second, loss: .61301, metrics: event.Metrics{{Name: "accuracy", Value: .8682}}, exchange: 20.3}
	for columns, want := range map[int]string{
		120: " 23% [=====>                ]  46/200  11.5 steps/s  0:04 elapsed  0:13 left  loss 0.6130  accuracy 0.8682  exchange 20%",
		100: " 23% [===>            ]  46/200  11.5 steps/s  0:04 elapsed  0:13 left  loss 0.6130  accuracy 0.8682",
		80:  " 23% [==>          ]  46/200  11.5 steps/s  0:04 elapsed  0:13 left  loss 0.6130",
		60:  " 23% [===>             ]  46/200  11.5 steps/s  0:04 elapsed",
		40:  " 23% [==>        ]  46/200  11.5 steps/s",
		20:  " 23%  46/200",
		5:   "",
	} {
		require.Equal(t, want, p.line(columns), "%d columns", columns)
	}
	for columns := range 200 {
		for _, p := range []progress{p, {done: 0, steps: 7}, {done: 7, before: 5, steps: 7, elapsed: time.Millisecond},
			{done: 123456, steps: 1234567, elapsed: 100 * time.Hour, loss: 1e9, metrics: event.Metrics{{Name: "accuracy", Value: 1}}, exchange: 100}} {
			require.LessOrEqual(t, utf8.RuneCountInString(p.line(columns)), columns)
		}
	}
	resumed := progress{done: 150, before: 100, steps: 200, elapsed: 5 * time.Second}
	require.Contains(t, resumed.line(200), "10.0 steps/s  0:05 elapsed  0:05 left", "steps of an earlier run take no time of this one")
	require.Equal(t, "1:00:01", clock(time.Hour+time.Second))
}

// The bar is redrawn in place and erased while a message is written and after the end.
// It is shown even if stdout is no terminal.
func TestScreenEndsTheBarBeforeMessages(t *testing.T) {
	var out, errs bytes.Buffer
	now := time.Unix(0, 0)
	s := &screen{out: &out, err: &errs, steps: 20, bar: &bottom{w: &errs, columns: func() int { return 62 }, now: func() time.Time { return now }}}
	s.Log("", []byte("hello"))
	require.Equal(t, "hello\n", errs.String(), "before the first step there is no bar")
	errs.Reset()
	step := func(n int) {
		s.Emit(&event.Step{Step: n, Seconds: float64(n), Loss: 1})
	}
	step(1)
	const first = "\r  5% [>                 ]  1/20  1.00 steps/s  0:01 elapsed"
	require.Equal(t, first, errs.String())
	step(2)
	require.Equal(t, first, errs.String(), "the bar is not redrawn faster than one can read")
	errs.Reset()
	s.Emit(&event.Checkpoint{Step: 2, Path: "run1/x"})
	blank := "\r" + strings.Repeat(" ", len(first)-1+echo) + "\r"
	require.Equal(t, blank+"checkpoint of step 2: run1/x\n\r 10% [=>                ]  2/20  1.00 steps/s  0:02 elapsed", errs.String())
	errs.Reset()
	now = now.Add(time.Second)
	step(3)
	require.Equal(t, "\r 15% [==>               ]  3/20  1.00 steps/s  0:03 elapsed", errs.String())
	errs.Reset()
	s.close()
	s.Log("worker 1", []byte("bye"))
	step(4)
	require.Equal(t, blank+"[worker 1] bye\n", errs.String())
	require.Empty(t, out.String())
}
