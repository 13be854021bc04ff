package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"net/netip"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
)

// fill sets every field in v to a different value that is not zero.
func fill(t *testing.T, v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(int64(1e9+*n), 0).UTC()))
			return
		}
		for i := range v.NumField() {
			require.True(t, v.Type().Field(i).IsExported(), "%v.%s would be lost on its way", v.Type(), v.Type().Field(i).Name)
			fill(t, v.Field(i), n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(t, v.Index(i), n)
		}
	case reflect.String:
		v.SetString("text \"<é>\"\n" + string(rune('a'+*n)))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int:
		v.SetInt(int64(*n))
	case reflect.Uint64:
		v.SetUint(1<<63 + uint64(*n)) // a float64 would round it
	case reflect.Float64:
		v.SetFloat(float64(*n) / 3)
	default:
		t.Fatalf("fill does not know %v", v.Type())
	}
}

// Every field of every kind reaches the launcher. An older launcher ignores fields that a
// newer worker adds.
func TestEveryFieldSurvives(t *testing.T) {
	for kind, make := range kinds() {
		sent, n := make(), 0
		fill(t, reflect.ValueOf(sent).Elem(), &n)
		line := Encode(sent)
		require.NotContains(t, string(line), "\n", kind)
		require.Equal(t, sent, Decode(line, nil), "%s", line)

		more := append(bytes.Clone(line[:len(line)-1]), `,"of_a_later_version":{"x":[1]}}`...)
		require.Equal(t, sent, Decode(more, nil), "%s", more)

		var fields map[string]any
		require.NoError(t, json.Unmarshal(line, &fields))
		named := 0 // metrics that are fields too
		if metrics, ok := fields["metrics"].([]any); ok {
			named = len(metrics)
		}
		require.Len(t, fields, 1+reflect.TypeOf(sent).Elem().NumField()+named, "two fields of %s have one name", kind)
	}
}

// A worker that is killed may leave half a line, which never decodes as an event.
func TestDecodeRefusesHalfLines(t *testing.T) {
	for kind, make := range kinds() {
		e, n := make(), 0
		fill(t, reflect.ValueOf(e).Elem(), &n)
		line := Encode(e)
		for cut := range line {
			require.Nil(t, Decode(line[:cut], nil), "%s: %s", kind, line[:cut])
		}
		require.Nil(t, Decode(append(bytes.Clone(line), line...), nil), "two lines in one")
	}
}

// A kind of this package wins over one of the caller that has its name.
func TestDecodePrefersItsOwnKinds(t *testing.T) {
	more := Table{"stopped": func() Event { return new(other) }}
	require.Equal(t, &Stopped{Steps: 3}, Decode([]byte(`{"event":"stopped","steps":3}`), more))
}

func TestLinesForTheUser(t *testing.T) {
	lost := &Lost{Rank: 1, Node: "b/0", SeenBy: 2, Op: "allreduce", Phase: "reduce-scatter", AfterMs: 12.345, Error: "connection reset"}
	require.Equal(t, "rank 2 lost rank 1 (b/0) in allreduce (reduce-scatter) after 12.3 ms: connection reset", lost.String())
	lost.Left = 3
	require.Equal(t, "rank 2 lost rank 1 (b/0) in allreduce (reduce-scatter) after 12.3 ms: connection reset; 3 workers continue", lost.String())
	lost.Left = 1
	require.Equal(t, "rank 2 lost rank 1 (b/0) in allreduce (reduce-scatter) after 12.3 ms: connection reset; 1 worker continues", lost.String())
	retry := &SaveRetry{Path: "out/step-5", Step: 5, Error: "no space left", Until: time.Date(2026, 1, 2, 13, 4, 5, 0, time.UTC)}
	require.Equal(t, "no space left; retrying until 13:04:05: repair what is wrong, or interrupt twice to give up", retry.String())
	retry.Full = true
	require.Equal(t, "no space left; retrying until 13:04:05: free some space, or interrupt twice to give up", retry.String())
	require.Equal(t, "waiting for another machine to save; if it cannot, it retries for up to a minute", new(SaveWait).String())
	require.Equal(t, "waiting for rank 2 (b/0) to save; if it cannot, it retries for up to a minute", (&SaveWait{Name: "rank 2 (b/0)"}).String())
	require.Equal(t, "allreduce algorithms: as ringtrain tune measured for 7 sizes, from /c/t.json", (&Tuned{Path: "/c/t.json", Sizes: 7}).String())
}

func TestNewView(t *testing.T) {
	v := collective.View{Epoch: 3, Job: 0xabc, Members: []collective.Member{
		{Name: "a/0", Node: "a", Addrs: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:7"), netip.MustParseAddrPort("10.0.0.2:7")}},
		{Name: "b/0", Node: "b"},
	}}
	require.Equal(t, &View{Epoch: 3, Job: "0000000000000abc", Members: []Member{
		{Rank: 0, Name: "a/0", Node: "a", Addr: "10.0.0.1:7"}, {Rank: 1, Name: "b/0", Node: "b"},
	}}, NewView(v))
}

// A failing writer records what it was given, after the given number of failures.
type failing struct {
	fails int
	calls int
	got   []string
}

func (f *failing) Write(b []byte) (int, error) {
	f.calls++
	if f.fails > 0 {
		f.fails--
		return len(b) / 2, errors.New("disk full")
	}
	f.got = append(f.got, string(b))
	return len(b), nil
}

// Events that could not be written are dropped, so later events are whole lines.
func TestWriterOutlivesAFailure(t *testing.T) {
	w := &failing{fails: 1}
	j := NewWriter(w, time.Hour)
	j.Emit(&Step{Step: 1})
	j.Emit(&Stopped{Steps: 1})
	j.Emit(&Stopped{Steps: 2})
	require.Equal(t, []string{`{"event":"stopped","steps":2}` + "\n"}, w.got)
}

// Without a delay every step is written at once. No event is written twice, and no write
// is empty.
func TestWriterWritesOnce(t *testing.T) {
	w := &failing{}
	j := NewWriter(w, 0)
	j.Emit(&Step{Step: 1})
	require.Len(t, w.got, 1)
	j.Flush()
	require.Equal(t, 1, w.calls)

	synctest.Test(t, func(t *testing.T) {
		w := &failing{}
		j := NewWriter(w, time.Second)
		j.Emit(&Step{Step: 1})
		j.Flush()
		<-time.After(time.Minute)
		synctest.Wait()
		require.Equal(t, 1, w.calls, "Flush stops the timer")
		begin := time.Now()
		j.Emit(&Step{Step: 2})
		<-time.After(time.Second / 2)
		j.Emit(&Step{Step: 3})
		<-time.After(time.Second)
		synctest.Wait()
		require.Len(t, w.got, 2, "the delay counts from the first step held, at %v", begin)
		require.Equal(t, 2, bytes.Count([]byte(w.got[1]), []byte("\n")))
	})
}

// A metric is a field of its event, unless the event has one of that name.
func TestMetricsAreFields(t *testing.T) {
	e := &Eval{Step: 3, Loss: .5, Metrics: Metrics{{Name: "r2", Value: .75}, {Name: "loss", Value: 9}, {Name: "event", Value: 8}, {Name: "r2", Value: 7}}}
	line := Encode(e)
	require.Equal(t, `{"event":"eval","r2":0.75,"step":3,"loss":0.5,"metrics":[{"name":"r2","value":0.75},{"name":"loss","value":9},{"name":"event","value":8},{"name":"r2","value":7}],"seconds":0}`, string(line))
	require.Equal(t, e, Decode(line, nil))
	require.Equal(t, .75, e.Metrics.Value("r2"))
	require.Zero(t, e.Metrics.Value("accuracy"))
	require.Equal(t, `{"event":"eval","step":0,"loss":0,"seconds":0}`, string(Encode(&Eval{})))
	require.Contains(t, string(Encode(&Eval{Metrics: Metrics{{Name: "r2", Value: math.NaN()}}})), `"invalid"`)
}
