package trainer

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/optim"
)

// Ranks compare their values every hashEvery steps, or in every round of local-sgd.
func TestWhenValuesAreCompared(t *testing.T) {
	b := cpu.New(cpu.Options{})
	defer b.Close()
	for name, c := range map[string]struct {
		strategy Strategy
		every    int
	}{
		"allreduce": {NewAllReduce(b, optim.DefaultSGD(.1)), hashEvery},
		"local-sgd": {NewLocalSGD(b, optim.DefaultSGD(.1), Averaging(7)), 1},
	} {
		builder := nn.NewBuilder(1)
		builder.Param("w", []int{3}, nn.Ones)
		p, err := builder.Build(b)
		require.NoError(t, err)
		_, err = c.strategy.Start(t.Context(), Start{Group: collectivetest.Local(t, 1)[0], Params: p})
		require.NoError(t, err)
		a, ok := c.strategy.(*AllReduce)
		if l, local := c.strategy.(*LocalSGD); local {
			a, ok = l.outer, true
		}
		require.True(t, ok)
		for step := range 2*hashEvery + 1 {
			compared := getWord(a.agreement.Word(p, Step{Index: step}, 0)).hash != 0
			require.Equal(t, step%c.every == 0, compared, "%s, step %d", name, step)
		}
		require.NoError(t, c.strategy.Close())
	}
}

// Counts are added up only if all ranks have counted the same things.
func TestTotalOfDifferentCounts(t *testing.T) {
	collectivetest.Ranks(t, 3, func(ctx context.Context, g *collective.Group) {
		a := NewAgreement(g, nil)
		own := nn.Counts{"rows": 1, "hits": float64(g.Rank())}
		total, err := a.Total(ctx, own)
		assert.NoError(t, err)
		assert.Equal(t, nn.Counts{"rows": 3, "hits": 3}, total)
		if g.Rank() == 1 {
			own = nn.Counts{"rows": 1, "loss": 2}
		}
		_, err = a.Total(ctx, own)
		var odd *DivergedError
		if assert.ErrorAs(t, err, &odd) {
			assert.Equal(t, []int{1}, odd.Ranks)
			assert.ErrorContains(t, err, "names of counts differ between ranks")
		}
		assert.NoError(t, g.Err(), "the ranks have compared them, and nothing is broken")
	})
}

// What compression has kept back must have the length of the model's gradients.
func TestResumeWithResidualsOfAnotherModel(t *testing.T) {
	b := cpu.New(cpu.Options{})
	defer b.Close()
	builder := nn.NewBuilder(1)
	builder.Param("w", []int{3}, nn.Ones)
	p, err := builder.Build(b)
	require.NoError(t, err)
	for n, want := range map[int]string{1: "the saved residual of rank 0 has 1 elements", p.Grads.Len(): ""} {
		s := NewAllReduce(b, optim.SGD{})
		s.SetCompression(Compression{Form: BFloat16})
		_, err := s.Start(t.Context(), Start{Group: collectivetest.Local(t, 1)[0], Params: p, From: State{Step: 1, Residuals: [][]float32{make([]float32, n)}}})
		if want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, want)
		}
		require.NoError(t, s.Close())
	}
}
