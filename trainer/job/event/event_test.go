package event

import (
	"bytes"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Every kind of event reaches the launcher, and no other line decodes as one.
func TestDecodeReadsWhatEncodeWrites(t *testing.T) {
	all := kinds()
	require.Len(t, all, 20)
	for kind, make := range all {
		line := Encode(make())
		require.True(t, strings.HasPrefix(string(line), `{"event":"`+kind+`"`), "%s", line)
		require.Equal(t, make(), Decode(line, nil))
	}
	lost := &Lost{Rank: 1, Node: "a/1", Error: "<gone>"}
	require.Equal(t, `{"event":"peer_lost","rank":1,"node":"a/1","seen_by":0,"op":"","phase":"","after_ms":0,"error":"\u003cgone\u003e"}`, string(Encode(lost)))
	require.Equal(t, lost, Decode(Encode(lost), nil))
	require.Equal(t, `{"event":"progress"}`, string(Encode(&Progress{})))
	for _, line := range []string{"", "step", "{}", `{"event":"other"}`, `{"event":"step","step":"x"}`, `{"event":7}`, `["event"]`} {
		require.Nil(t, Decode([]byte(line), nil), line)
	}
	require.Equal(t, `{"event":"invalid","error":"json: unsupported value: NaN"}`, string(Encode(&Step{Loss: math.NaN()})))
}

type other struct{ X int }

func (*other) Kind() string { return "other" }

func TestDecodeReadsMoreKinds(t *testing.T) {
	more := TableOf(func() Event { return new(other) })
	require.Equal(t, &other{3}, Decode(Encode(&other{3}), more))
	require.Equal(t, &Stopped{Steps: 4}, Decode([]byte(`{"event":"stopped","steps":4}`), more))
}

// A counter counts the lines that are written to it.
type counter struct{ lines *atomic.Int64 }

func (c counter) Write(b []byte) (int, error) {
	c.lines.Add(int64(bytes.Count(b, []byte("\n"))))
	return len(b), nil
}

// Steps are written together, after the delay at the latest, and before any other event.
func TestWriterHoldsSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var newlines atomic.Int64 // the Writer's timer writes them, too
		w := NewWriter(counter{&newlines}, 50*time.Millisecond)
		lines := func() int { return int(newlines.Load()) }
		w.Emit(&Step{Step: 1})
		w.Emit(&Step{Step: 2})
		require.Zero(t, lines())
		<-time.After(51 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, 2, lines())
		w.Emit(&Step{Step: 3})
		w.Emit(&Eval{Step: 3})
		require.Equal(t, 4, lines())
		w.Emit(&Step{Step: 4})
		w.Flush()
		require.Equal(t, 5, lines())
	})
}

func FuzzDecode(f *testing.F) {
	f.Add(Encode(&View{Members: []Member{{Rank: 1}}}))
	f.Add([]byte(`{"event":"step","step":1e99}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		if e := Decode(line, nil); e != nil {
			require.Equal(t, e, Decode(Encode(e), nil))
		}
	})
}
