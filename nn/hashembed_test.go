package nn_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
)

// london is spaCy's id of "london".
const london = 686896126224900680

// hashEmbed returns the parameters of a model of one layer. Element j of row i of its table is
// i + j/4.
func hashEmbed(t *testing.T, l *nn.HashEmbed, columns int) *nn.Params {
	t.Helper()
	l.InitE = func(values []float32, shape []int, _ *nn.Draws) {
		for i := range values {
			values[i] = float32(i/shape[1]) + float32(i%shape[1])/4
		}
	}
	p, made := built(t, l, []int{columns, 2}, nil)
	require.Equal(t, []int{l.Out}, made)
	return p
}

// An id becomes the sum of the four rows that Thinc chooses.
func TestHashEmbedAddsFourRows(t *testing.T) {
	be := cpu.New(cpu.Options{})
	for _, c := range []struct {
		seed uint32
		rows int
		want []int
	}{
		{8, 2000, []int{594, 565, 539, 1495}},
		{9, 1000, []int{286, 15, 343, 671}},
	} {
		l := &nn.HashEmbed{Out: 2, Rows: c.rows, Seed: c.seed, Column: 1}
		p := hashEmbed(t, l, 2)
		x := nn.WideIDs([]uint64{1, london, 2, london}, 2, []int{2})
		y, back := l.Forward(&nn.Pass{Backend: be}, x)
		require.Equal(t, []int{2}, y.Lengths)
		sum := float32(c.want[0] + c.want[1] + c.want[2] + c.want[3])
		require.Equal(t, []float32{sum, sum + 1, sum, sum + 1}, y.Data.Float32s())

		be.Copy(y.Data, []float32{1, 10, 100, 1000})
		require.Equal(t, nn.Tensor{}, back(y), "ids have no gradient")
		total := float32(0)
		for _, g := range p.Grads.Float32s() {
			total += g
		}
		require.EqualValues(t, 4*1111, total)
		require.Equal(t, slices.Sorted(slices.Values(c.want)), slices.Collect(p.List[0].Touched.All()))
		for _, row := range c.want {
			require.Equal(t, []float32{101, 1010}, p.List[0].Grads.Float32s()[2*row:][:2])
		}
	}
}

// A batch has one mask, which all of its rows and their gradients share. It depends on the
// batch and the step.
func TestHashEmbedDropsColumns(t *testing.T) {
	be, l := cpu.New(cpu.Options{}), &nn.HashEmbed{Out: 64, Rows: 5, Dropout: .25}
	p := hashEmbed(t, l, 1)
	x := nn.WideIDs([]uint64{1, 2, 3}, 1, []int{3})
	whole, _ := l.Forward(&nn.Pass{Backend: be}, x)
	masks := map[[64]bool]bool{}
	for first := range 4 {
		y, back := l.Forward(&nn.Pass{Backend: be, Train: true, Random: nn.Stream{Seed: 1, Step: 2, First: first, Stride: 4}}, x)
		var kept [64]bool
		for j := range kept {
			kept[j] = y.Data.Float32s()[j] != 0
		}
		masks[kept] = true
		scale := 1 / (1 - l.Dropout)
		for i, v := range y.Data.Float32s() {
			if kept[i%64] {
				require.Equal(t, whole.Data.Float32s()[i]*scale, v)
			} else {
				require.Zero(t, v)
			}
		}
		be.Zero(p.Grads)
		for i := range y.Data.Float32s() {
			y.Data.Float32s()[i] = 1
		}
		back(y)
		for j := range 64 {
			sum := float32(0)
			for row := range 5 {
				sum += p.List[0].Grads.Float32s()[64*row+j]
			}
			require.Equal(t, kept[j], sum != 0, "column %d", j)
		}
	}
	require.Len(t, masks, 4, "each micro-batch has its own mask")
}

func TestHashEmbedMistakes(t *testing.T) {
	used := &nn.HashEmbed{Out: 2, Rows: 3}
	hashEmbed(t, used, 1)
	ids := []int{4, 2}
	for name, c := range map[string]struct {
		layer nn.Layer
		in    []int
		want  string
	}{
		"used twice": {used, ids, "already belongs to a model"},
		"not first":  {nn.Chain(&nn.Flatten{}, &nn.HashEmbed{Out: 2, Rows: 3}), ids, "layers.1: HashEmbed follows another layer"},
		"numbers":    {&nn.HashEmbed{Out: 2, Rows: 3}, []int{784}, "rows of input have shape [784]"},
		"column":     {&nn.HashEmbed{Out: 2, Rows: 3, Column: 4}, ids, "Column must be from 0 to 3, not 4"},
		"rows":       {&nn.HashEmbed{Out: 2}, ids, "Rows must be from 1 to 2147483647, not 0"},
		"out":        {&nn.HashEmbed{Rows: 3}, ids, "Out is not set"},
		"dropout":    {&nn.HashEmbed{Out: 2, Rows: 3, Dropout: 1}, ids, "dropout rate must be at least 0 and less than 1"},
	} {
		_, err := c.layer.Init(c.in, nil, nn.NewBuilder(1))
		require.ErrorContains(t, err, c.want, name)
	}
	require.ErrorContains(t, nn.CheckInput(used, nn.Tensor{Shape: []int{1, 1, 2}, Data: nn.Host(make([]float32, 2))}), "takes int32 halves of ids")
	require.ErrorContains(t, nn.CheckInput(used, nn.Tensor{Shape: []int{1, 1, 2}, Data: nn.OnDevice(0, 4096, 2, nn.Int32)}), "ids in host memory")
	require.NoError(t, nn.CheckInput(used, nn.WideIDs([]uint64{5}, 1, nil)))
}

// Steps of a model that hashes on the host cannot be recorded.
func TestHashEmbedIsOnTheHost(t *testing.T) {
	b := nn.NewBuilder(1)
	_, err := (&nn.HashEmbed{Out: 2, Rows: 3}).Init([]int{1, 2}, nil, b.Scope("embed"))
	require.NoError(t, err)
	require.Equal(t, "embed", b.HostLayer())
}
