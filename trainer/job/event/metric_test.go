package event

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// A metric may have any name, also that of a field in another case, which Go's decoder
// takes for the field. The event is read as it was written.
func TestMetricsNamedLikeFields(t *testing.T) {
	for _, name := range []string{"event", "Event", "EVENT", "step", "Step", "LOSS", "Seconds", "\u017feconds", "metrics", "Metrics", "weights_SHA256", "samples_per_second", "best", "Best_Step", "best_metric", "best_value", "left", ""} {
		metrics := Metrics{{Name: name, Value: .5}, {Name: "accuracy", Value: .25}}
		for _, e := range []Event{
			&Eval{Step: 3, Loss: 1.5, Metrics: metrics, Seconds: 2},
			&Result{Steps: 3, Loss: 1.5, Metrics: metrics, Seconds: 2, Workers: 4},
		} {
			line := Encode(e)
			require.Equal(t, e, Decode(line, nil), "%q: %s", name, line)
			var fields map[string]any
			require.NoError(t, json.Unmarshal(line, &fields), name)
			require.Equal(t, e.Kind(), fields["event"], name)
			require.Equal(t, .25, fields["accuracy"], name)
		}
	}
}

// Of two metrics with one name, or with names that differ only in case, the first is the
// field. The list has both.
func TestMetricsOfOneName(t *testing.T) {
	e := &Eval{Step: 1, Metrics: Metrics{{Name: "f1", Value: .1}, {Name: "F1", Value: .2}, {Name: "f1", Value: .3}}}
	line := string(Encode(e))
	require.Equal(t, 1, strings.Count(line, `"f1":`), line)
	require.NotContains(t, line, `"F1":`)
	require.Equal(t, e, Decode([]byte(line), nil))
	require.Equal(t, .1, e.Metrics.Value("f1"))
	require.Equal(t, .2, e.Metrics.Value("F1"), "names in the list are exact")
	require.Zero(t, e.Metrics.Value("recall"), "there is none")
	require.Zero(t, Metrics(nil).Value(""))
}

// A number that JSON does not have makes the event invalid, wherever it is, and the reason
// is one valid line.
func TestNumbersThatJSONLacks(t *testing.T) {
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for _, e := range []Event{
			&Eval{Metrics: Metrics{{Name: "accuracy", Value: x}}}, &Eval{Loss: x}, &Eval{Seconds: x},
			&Result{Metrics: Metrics{{Name: "r2", Value: 1}, {Name: "rmse", Value: x}}}, &Result{Loss: x}, &Lost{AfterMs: x},
		} {
			line := Encode(e)
			var invalid struct{ Event, Error string }
			require.NoError(t, json.Unmarshal(line, &invalid), "%s", line)
			require.Equal(t, "invalid", invalid.Event)
			require.Contains(t, invalid.Error, "unsupported value")
			require.Nil(t, Decode(line, nil), "it is shown to the user as it is")
		}
	}
}

// Whatever a program calls its metrics, the launcher reads the event of its workers.
func FuzzMetricNames(f *testing.F) {
	f.Add("accuracy", "Accuracy", .5)
	f.Add("step", "\u212aey", 1e300)
	f.Add("\"\n<", "event", -0.)
	f.Fuzz(func(t *testing.T, first, second string, value float64) {
		if !utf8.ValidString(first) || !utf8.ValidString(second) || math.IsNaN(value) || math.IsInf(value, 0) {
			return
		}
		e := &Eval{Step: 7, Metrics: Metrics{{Name: first, Value: value}, {Name: second, Value: 1}}}
		line := Encode(e)
		require.NotContains(t, string(line), "\n")
		require.Equal(t, e, Decode(line, nil), "%s", line)
	})
}

func TestDetailsAreNotShown(t *testing.T) {
	all := Metrics{{Name: "f", Value: .1}, {Name: "f:PER", Value: .2, Detail: true}}
	require.Equal(t, all[:1], all.Shown())
	line, err := json.Marshal(&Eval{Metrics: all})
	require.NoError(t, err)
	require.Contains(t, string(line), `"f:PER":0.2`)
}
