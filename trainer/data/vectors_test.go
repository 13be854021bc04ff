package data

import (
	"crypto/sha256"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
)

func someVectors() *Vectors {
	return &Vectors{Rows: 4, Width: 2, X: []float32{1, 2, 3, 4, 5, 6, 7, 8}, Labels: []int32{3, 2, 1, 0}, Values: []float32{.1, .2, .3, .4}}
}

// distant is a backend whose memory the host cannot write to. It keeps what is copied to it.
type distant struct {
	*cpu.Backend
	floats []float32
	ints   []int32
}

func (d *distant) Alloc(n int) nn.Buffer             { return nn.OnDevice(0, 1, n, nn.Float32) }
func (d *distant) AllocInts(n int) nn.Buffer         { return nn.OnDevice(0, 2, n, nn.Int32) }
func (d *distant) Copy(_ nn.Buffer, src []float32)   { d.floats = append(d.floats, src...) }
func (d *distant) CopyInts(_ nn.Buffer, src []int32) { d.ints = append(d.ints, src...) }

func TestVectors(t *testing.T) {
	b, v := cpu.New(cpu.Options{}), someVectors()
	defer b.Close()
	labelled, err := v.Labelled(3, b)([]int32{3, 0})
	require.NoError(t, err)
	require.Equal(t, 2, labelled.Rows())
	require.Equal(t, []int{2, 2}, labelled.X.Shape)
	require.Equal(t, []float32{7, 8, 1, 2}, labelled.X.Data.Float32s())
	require.Equal(t, []int32{0, 3}, labelled.Labels.Int32s())
	valued, err := v.Valued(3, b)([]int32{2})
	require.NoError(t, err)
	require.Equal(t, []float32{5, 6}, valued.X.Data.Float32s())
	require.Equal(t, []int{1, 1}, valued.Y.Shape)
	require.Equal(t, []float32{.3}, valued.Y.Data.Float32s())

	far := &distant{Backend: b}
	stage := v.Labelled(3, far)
	for range 2 { // with the memory of the first
		far.floats, far.ints = nil, nil
		batch, err := stage([]int32{3, 0})
		require.NoError(t, err)
		require.Equal(t, []int{4, 2}, []int{batch.X.Data.Len(), batch.Labels.Len()})
		require.Equal(t, []float32{7, 8, 1, 2}, far.floats)
		require.Equal(t, []int32{0, 3}, far.ints)
	}
}

// Steps that gather their own batch get the rows of steps that do not.
func TestResidentVectors(t *testing.T) {
	b, v := cpu.New(cpu.Options{}), someVectors()
	defer b.Close()
	sampler, err := NewSampler(4, 1, 1, 2, 5)
	require.NoError(t, err)
	labelled := NewResident(v.Labelled(1, b), v.LabelledStore(1, b), sampler, b)
	valued := NewResident(v.Valued(1, b), v.ValuedStore(1, b), sampler, b)
	pace := b.NewPace(nn.PaceConfig{Hyper: func(int) (h [nn.HyperLen]float32) { return h }})
	for step := range 5 {
		first, _ := labelled.Seek(step)
		valued.Seek(step)
		pace.Seek(step, first)
		want, err := labelled.Batch(step)
		require.NoError(t, err)
		got := labelled.Gather(pace, 1)
		require.Equal(t, want.X.Data.Float32s(), got.X.Data.Float32s())
		require.Equal(t, want.Labels.Int32s(), got.Labels.Int32s())
		values, err := valued.Batch(step)
		require.NoError(t, err)
		gathered := valued.Gather(pace, 1)
		require.Equal(t, want.X.Data.Float32s(), gathered.X.Data.Float32s())
		require.Equal(t, values.Y.Data.Float32s(), gathered.Y.Data.Float32s())
		require.Equal(t, values.Y.Shape, gathered.Y.Shape)
	}
}

// Each part of a row has an effect on the hash.
func TestHashOfVectors(t *testing.T) {
	sum := func(change func(v *Vectors)) [32]byte {
		v, h := someVectors(), sha256.New()
		change(v)
		v.Hash(h)
		return [32]byte(h.Sum(nil))
	}
	seen := map[[32]byte]bool{sum(func(*Vectors) {}): true}
	require.True(t, seen[sum(func(*Vectors) {})])
	for _, change := range []func(v *Vectors){func(v *Vectors) { v.X[7] = 0 }, func(v *Vectors) { v.Labels[0] = 0 }, func(v *Vectors) { v.Values[3] = 0 }} {
		require.False(t, seen[sum(change)])
	}
}
