package nn_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
)

// keeping is a backend that releases nothing before Recycle.
type keeping struct{ nn.Backend }

// spoiling is a backend that overwrites what is released, and checks that nothing is
// released twice.
type spoiling struct {
	*cpu.Backend
	t        *testing.T
	released map[*float32]bool
}

func (b *spoiling) Release(v nn.Buffer) {
	if v.Len() == 0 {
		return
	}
	start := unsafe.SliceData(v.Float32s())
	require.False(b.t, b.released[start], "released twice")
	b.released[start] = true
	for i := range v.Float32s() {
		v.Float32s()[i] = float32(math.NaN())
	}
}

// Layers release memory only when nobody needs it, so gradients are the same whether its
// contents survive or not.
func TestReleasedMemoryIsNotUsed(t *testing.T) {
	block := func() nn.Layer {
		return nn.Chain(
			nn.Residual(nn.Chain(nn.EachPosition(&nn.LayerNorm{}), &nn.SelfAttention{Heads: 2, Causal: true})),
			nn.Residual(nn.EachPosition(nn.Chain(&nn.LayerNorm{}, &nn.Gelu{Out: 6, Dropout: .1, Normalize: true}, &nn.Linear{Out: 4}))),
		)
	}
	in := []int{5, 4}
	for name, make := range map[string]func() nn.Layer{
		"transformer": func() nn.Layer { return nn.Chain(nn.Clone(2, block), &nn.Softmax{}) },
		"identities": func() nn.Layer {
			return nn.Chain(nn.Chain(&nn.Positions{}, &nn.Dropout{}), nn.Chain(&nn.Positions{}), &nn.Flatten{}, &nn.Softmax{})
		},
		"norm in residual": func() nn.Layer { return nn.Chain(&nn.Linear{Out: 4}, nn.Residual(&nn.LayerNorm{}), &nn.Softmax{}) },
		"branches": func() nn.Layer {
			return nn.Chain(&nn.Linear{Out: 4},
				nn.Add(nn.Chain(&nn.Gelu{Out: 4}, &nn.LayerNorm{}), nn.Residual(nn.Chain(&nn.Relu{Out: 4})), &nn.Dropout{Rate: .2}),
				nn.Concatenate(nn.Chain(&nn.LayerNorm{}), nn.Chain(&nn.Maxout{Out: 3}, &nn.Dropout{Rate: .2})), &nn.Softmax{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			const rows, classes = 3, 4
			learn := func(b nn.Backend) []float32 {
				m, err := nn.NewClassifier(b, make(), in, classes, 1)
				require.NoError(t, err)
				x, labels := b.Alloc(rows*20), b.AllocInts(rows)
				r := rand.New(rand.NewPCG(1, 2))
				for i := range x.Float32s() {
					x.Float32s()[i] = float32(r.NormFloat64())
				}
				_, _, err = m.Learn(&nn.Pass{Backend: b, Train: true}, nn.Batch{X: nn.Tensor{Shape: append([]int{rows}, in...), Data: x}, Labels: labels})
				require.NoError(t, err)
				return m.Params().Grads.Float32s()
			}
			want := learn(keeping{cpu.New(cpu.Options{})})
			spoiler := &spoiling{Backend: cpu.New(cpu.Options{}), t: t, released: map[*float32]bool{}}
			require.Equal(t, want, learn(spoiler))
			require.Equal(t, want, learn(cpu.New(cpu.Options{})))
			if name != "identities" {
				require.NotEmpty(t, spoiler.released)
			}
		})
	}
}
