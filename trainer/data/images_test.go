package data

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// tiny returns a set in which every pixel identifies its position.
func tiny(rows, height, width int) *Images {
	m := &Images{Rows: rows, Height: height, Width: width, Classes: 10, Pixels: make([]byte, rows*height*width), Labels: make([]byte, rows)}
	for i := range m.Pixels {
		m.Pixels[i] = byte(i)
	}
	for i := range m.Labels {
		m.Labels[i] = byte(i % 10)
	}
	return m
}

func TestGather(t *testing.T) {
	m := tiny(4, 2, 3)
	x := []float32{-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -7}
	labels := []int32{-1, -1, -7}
	require.NoError(t, m.Gather([]int32{3, 1}, x, labels))
	for i, want := range []byte{18, 19, 20, 21, 22, 23, 6, 7, 8, 9, 10, 11} {
		require.Equal(t, float32(want)/255, x[i])
	}
	require.Equal(t, []int32{3, 1, -7}, labels)
	require.Equal(t, float32(-7), x[12], "the rest is not changed")
	require.NoError(t, m.Gather(nil, nil, nil))
}

func TestGatherErrors(t *testing.T) {
	m := tiny(4, 2, 3)
	x, labels := make([]float32, 12), make([]int32, 2)
	require.ErrorContains(t, m.Gather([]int32{0, 1}, x[:11], labels), "a batch of 2 rows needs 12 values and 2 labels, but there is room for 11 and 2")
	require.ErrorContains(t, m.Gather([]int32{0, 1}, x, labels[:1]), "needs 12 values")
	require.ErrorContains(t, m.Gather([]int32{0, 4}, x, labels), "there is no row 4; the set has rows 0 to 3")
	require.ErrorContains(t, m.Gather([]int32{-1}, x, labels), "row -1")
	require.Equal(t, make([]float32, 12), x, "nothing was written")
}

func TestLabelClasses(t *testing.T) {
	require.Equal(t, 10, labelClasses([]byte{0, 1}, []byte{2}))
	require.Equal(t, 27, labelClasses([]byte{0, 1}, []byte{26}))
	require.Equal(t, 10, labelClasses())
}

func BenchmarkGather(b *testing.B) {
	m := tiny(1000, 28, 28)
	rows, _ := mustSampler(b, 1000, 128, 0, 1, 0).Step(0)
	x, labels := make([]float32, 128*784), make([]int32, 128)
	b.SetBytes(128 * 784)
	for b.Loop() {
		if err := m.Gather(rows, x, labels); err != nil {
			b.Fatal(err)
		}
	}
}
