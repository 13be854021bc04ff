package bench_test

import (
	"bytes"
	"image/png"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/bench"
)

func TestChart(t *testing.T) {
	c := bench.Chart{Title: "Accuracy", X: "rows", Y: "accuracy", Lines: []bench.Line{
		{Name: "first", X: []float64{10, 20}, Y: []float64{.5, .9}},
		{Name: "second", Dashed: true, X: []float64{10}, Y: []float64{.4}},
	}}
	var out bytes.Buffer
	require.NoError(t, c.Plot(&out, "png"))
	image, err := png.DecodeConfig(&out)
	require.NoError(t, err)
	require.Equal(t, 1200, image.Width)
	out.Reset()
	require.NoError(t, c.Plot(&out, "svg"))
	for _, text := range []string{">Accuracy<", ">rows<", ">first<", ">second<"} {
		require.Contains(t, out.String(), text)
	}

	require.ErrorContains(t, bench.Chart{}.Plot(&out, "png"), "no lines")
	c.Lines[0].Y = nil
	require.ErrorContains(t, c.Plot(&out, "png"), "line first has 2 values of X and 0 of Y")
	c.Lines = make([]bench.Line, 7)
	require.ErrorContains(t, c.Plot(&out, "png"), "at most 6, not 7")
}
