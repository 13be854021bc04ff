package optim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/optim"
)

// Optimizers leave running statistics to their rule: no clipping, decay, moments or learn
// rate, and their average is their value.
func TestStatistics(t *testing.T) {
	adam, sgd := optim.DefaultAdam(), optim.DefaultSGD(.5)
	adam.L2, sgd.L2 = optim.Constant(.3), optim.Constant(.3)
	for name, o := range map[string]optim.Recordable{"Adam": adam, "RAdam": optim.RAdam(adam), "SGD": sgd} {
		t.Run(name, func(t *testing.T) {
			testStatistics(t, cpu.New(cpu.Options{}), o)
			testStatistics(t, byParameter{cpu.New(cpu.Options{})}, o)
		})
	}
}

// byParameter is a Backend that cannot update whole arenas.
type byParameter struct{ nn.Backend }

func testStatistics(t *testing.T, be nn.Backend, o optim.Recordable) {
	b := nn.NewBuilder(1)
	w := b.Param("W", []int{3}, nn.Ones)
	q := b.Statistic("running_mean", []int{2}, nn.Ones, .25)
	last := b.Param("b", []int{5}, nn.Zeros)
	p, err := b.Build(be)
	require.NoError(t, err)
	require.Equal(t, 8, p.Count())
	state, hyper := optim.NewState(be, p, o), be.Alloc(nn.HyperLen)
	want := []float32{1, 1}
	for step := range 9 {
		for i := range want {
			mean := float32(10 * (step - 3*i))
			q.Grads.Float32s()[i], w.Grads.Float32s()[i], last.Grads.Float32s()[i] = mean, 1, 1
			want[i] = float32(.75*want[i]) + float32(.25*mean)
		}
		switch h, form := o.Hyper(step); {
		case step%3 == 0 || form == (optim.Form{}):
			optim.Step(o, be, p, state)
		case step%3 == 1:
			be.Copy(hyper, h[:])
			be.Scale(p.Grads, 8)
			form.Spend(be, p, state, hyper, 1./8)
			require.Zero(t, q.Grads.Float32s()[0])
			state.Step++
		default: // part by part
			for _, q := range p.List {
				o.Update(be, p, state, optim.Only(q))
			}
			state.Step++
		}
		require.Equal(t, want, q.Values.Float32s(), "step %d", step)
		average := state.Slots[optim.SlotAverage].Slice(q.Offset, q.Offset+2)
		require.Equal(t, want, average.Float32s(), "step %d", step)
	}
	require.NotEqual(t, float32(1), w.Values.Float32s()[0])
	require.NotZero(t, last.Values.Float32s()[0])
}

func TestStatisticNeedsMomentum(t *testing.T) {
	for _, momentum := range []float32{0, -.1, 1.5} {
		b := nn.NewBuilder(1)
		b.Scope("norm").Statistic("running_mean", []int{2}, nn.Ones, momentum)
		_, err := b.Build(cpu.New(cpu.Options{}))
		require.ErrorContains(t, err, "the momentum of statistic norm.running_mean must be")
	}
}
