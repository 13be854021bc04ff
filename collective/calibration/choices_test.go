package calibration

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var errTrial = errors.New("a trial failed")

// failing is a Meter whose trials, or whose Costs, fail.
type failing struct{ costs bool }

func (f failing) Costs() (Costs, error) {
	if f.costs {
		return Costs{}, errTrial
	}
	return Costs{Poll: time.Nanosecond}, nil
}

func (failing) Measure(Trial) (Measurement, error) { return Measurement{}, errTrial }

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text  string
		mode  Mode
		fixed map[string]int
	}{
		{"", Auto, nil},
		{"auto", Auto, nil},
		{"off", Off, nil},
		{"refine", Refine, nil},
		{"chunk=64K", Auto, map[string]int{"chunk": 64 << 10}},
		{"chunk=64k", Auto, map[string]int{"chunk": 64 << 10}},
		{"off,read-most=off,read-least=1M", Off, map[string]int{"read-most": 0, "read-least": 1 << 20}},
		{"string-least=1,off", Off, map[string]int{"string-least": 1}},
	} {
		p, err := Parse(c.text)
		require.NoError(t, err, c.text)
		require.Equal(t, Policy{Mode: c.mode, Fixed: c.fixed}, p, c.text)
	}
	for text, want := range map[string]string{
		"on":                  `"on" is neither auto, off, refine nor a choice such as chunk=64K`,
		"off,":                `"off," has an empty element: remove a comma`,
		",off":                `",off" has an empty element: remove a comma`,
		"refine,,chunk=64K":   `"refine,,chunk=64K" has an empty element: remove a comma`,
		"off,chunk=64K,auto":  `"off,chunk=64K,auto" has two modes, off and auto: use one`,
		"chunks=1":            `unknown choice "chunks": use one of small, chunk, string-least, stream-least, rotate-most, in-place-step, prefetch-most, read-least, read-most, read-chunk, polls, rounds, yields`,
		"chunk=1T":            `"1T" is not a size: use bytes, or a number with K, M or G, or off`,
		"chunk=-4K":           `"-4K" is not a size: use bytes, or a number with K, M or G, or off`,
		"chunk=9M":            "chunk must be from 16K to 256K, not 9437184",
		"chunk=off":           "chunk must be from 16K to 256K, not 0",
		"chunk=20001":         "chunk must be a multiple of 4K, not 20001",
		"small=9999999999999": `"9999999999999" is not a size: use bytes, or a number with K, M or G, or off`,
	} {
		_, err := Parse(text)
		require.EqualError(t, err, want)
	}
}

// The text of choices fixes them, and words carry them.
func TestChoicesRoundTrip(t *testing.T) {
	for _, ranks := range []int{2, 3, 64} {
		c := Default(ranks)
		require.NoError(t, c.Check())
		c.Yields, c.StringLeast, c.ReadMost = 7, 0, mostSize
		p, err := Parse("off," + c.String())
		require.NoError(t, err)
		require.Equal(t, c, p.Fix(Default(2)))
		var words [Words]uint64
		c.Put(&words)
		got, err := Get(&words)
		require.NoError(t, err)
		require.Equal(t, c, got)
		words[1] = 1 << 63
		_, err = Get(&words)
		require.ErrorContains(t, err, "chunk must be from 16K to 256K, not ")
	}
}

func TestWaits(t *testing.T) {
	for _, c := range []struct {
		costs Costs
		want  [3]int // polls, rounds, yields
	}{
		{Costs{}, [3]int{250, 8, 50}},
		{Costs{Poll: 20, Yield: 400, Wake: 40_000}, [3]int{250, 8, 50}},
		{Costs{Poll: 1, Yield: 1, Wake: 1}, [3]int{1000, 4, 200}},
		{Costs{Poll: time.Millisecond, Yield: time.Millisecond, Wake: time.Second}, [3]int{25, 20, 10}},
	} {
		got := Default(2)
		got.wait(c.costs)
		require.Equal(t, c.want, [3]int{got.Polls, got.Rounds, got.Yields}, "%+v", c.costs)
	}
}

func TestReportString(t *testing.T) {
	c := "small=8K,chunk=128K,string-least=2K,stream-least=2K,rotate-most=128K,in-place-step=16K,prefetch-most=1K,read-least=4M,read-most=off,read-chunk=512K,polls=250,rounds=8,yields=50"
	for want, r := range map[string]Report{
		c + " (default)":            {},
		c + " (cached)":             {Source: FromStore},
		c + " (measured in 17.3ms)": {Source: FromTrials, Lasting: true, Done: Experiments, Took: 17_312 * time.Microsecond},
		c + " (measured in 17.3ms, and the next job measures more)": {Source: FromTrials, Lasting: true, Took: 17_312 * time.Microsecond},
		c + " (measured in 28ms under other load, so not cached)":   {Source: FromTrials, Took: 28 * time.Millisecond},
	} {
		r.Choices = Default(2)
		require.Equal(t, want, r.String())
	}
}
