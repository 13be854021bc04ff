package data_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// remote is a backend whose memory the host cannot write to directly, like a GPU's.
type remote struct{ *cpu.Backend }

func (r remote) Alloc(n int) nn.Buffer     { return nn.OnDevice(0, 1, n, nn.Float32) }
func (r remote) AllocInts(n int) nn.Buffer { return nn.OnDevice(0, 2, n, nn.Int32) }

func (r remote) Copy(dst nn.Buffer, src []float32)   { r.take(dst, len(src)) }
func (r remote) CopyInts(dst nn.Buffer, src []int32) { r.take(dst, len(src)) }

func (r remote) take(dst nn.Buffer, n int) {
	if dst.Len() != n {
		panic("copy of a different length")
	}
}

func TestFeedReturnsTheSamplersRows(t *testing.T) {
	train, _ := data.Generate(data.DigitsOptions{Train: 25, Test: 1, Side: 7})
	b := cpu.New(cpu.Options{})
	defer b.Close()
	sampler, err := data.NewSampler(25, 4, 1, 3, 9)
	require.NoError(t, err)
	twin, err := data.NewSampler(25, 4, 1, 3, 9)
	require.NoError(t, err)
	feed := data.NewFeed(train.Stage(4, b), sampler)
	far := data.NewFeed(train.Stage(4, remote{b}), sampler)
	for step := range 7 {
		rows, _ := twin.Step(step)
		got, err := feed.Batch(step)
		require.NoError(t, err)
		require.Equal(t, len(rows), got.Rows())
		require.Equal(t, []int{len(rows), 49}, got.X.Shape)
		for i, row := range rows {
			require.EqualValues(t, train.Labels[row], got.Labels.Int32s()[i])
			for p, pixel := range train.Image(int(row)) {
				require.Equal(t, float32(pixel)/255, got.X.Data.Float32s()[i*49+p])
			}
		}
		got, err = far.Batch(step)
		require.NoError(t, err)
		require.Equal(t, len(rows), got.Rows())
	}
}

func TestPartsCoverTheSetOnce(t *testing.T) {
	_, test := data.Generate(data.DigitsOptions{Train: 1, Test: 23, Side: 7})
	b := cpu.New(cpu.Options{})
	defer b.Close()
	for size := 1; size <= 5; size++ {
		var labels []byte
		for rank := range size {
			for batch, err := range data.NewPart(test.Stage(4, b), test.Rows, rank, size, 4).All() {
				require.NoError(t, err)
				require.LessOrEqual(t, batch.Rows(), 4)
				for _, l := range batch.Labels.Int32s() {
					labels = append(labels, byte(l))
				}
			}
		}
		require.Equal(t, test.Labels, labels)
	}
}
