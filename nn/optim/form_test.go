package optim_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/models"
	"github.com/ringtrain/ringtrain/nn/optim"
)

// Update equals Apply of the Form and hyper-parameters that Hyper returns.
func TestApplyEqualsUpdate(t *testing.T) {
	unclipped := optim.DefaultAdam()
	unclipped.GradClip, unclipped.LearnRate = nil, optim.WarmupLinear(.01, 3, 9)
	becomes := optim.DefaultAdam() // after step 4 there are no moments
	becomes.Beta2 = optim.ConstantThen(.999, 4, optim.Constant(0))
	for name, o := range map[string]optim.Recordable{
		"SGD": optim.DefaultSGD(.1), "Adam": optim.DefaultAdam(), "RAdam": optim.DefaultRAdam(), "without clipping": unclipped, "becomes SGD": becomes,
	} {
		t.Run(name, func(t *testing.T) {
			b := cpu.New(cpu.Options{})
			defer b.Close()
			var nets [2]*nn.Params
			var states [2]*optim.State
			for i := range nets {
				nets[i] = perceptron(t, b)
				states[i] = optim.NewState(b, nets[i], o)
			}
			hyper, forms := b.Alloc(nn.HyperLen), map[optim.Form]int{}
			for step := range 9 {
				for i, p := range nets {
					for _, q := range p.List {
						for k := range q.Grads.Float32s() {
							q.Grads.Float32s()[k] = float32((q.Offset+k)%7-3) * float32(step+1)
						}
					}
					h, form := o.Hyper(step)
					if i == 0 || form == (optim.Form{}) {
						optim.Step(o, b, p, states[i])
						continue
					}
					b.Copy(hyper, h[:])
					if step%2 == 0 {
						form.Apply(b, p, states[i], hyper)
					} else { // from sums
						b.Scale(p.Grads, 4)
						form.Spend(b, p, states[i], hyper, .25)
						require.Zero(t, slices.Max(p.Grads.Float32s()))
						require.Zero(t, slices.Min(p.Grads.Float32s()))
					}
					states[i].Step++
					forms[form]++
				}
				require.Equal(t, nets[0].Values.Float32s(), nets[1].Values.Float32s(), "step %d", step)
				for slot, want := range states[0].Slots {
					require.Equal(t, want.Float32s(), states[1].Slots[slot].Float32s(), "%s, step %d", slot, step)
				}
			}
			switch name {
			case "becomes SGD":
				require.Len(t, forms, 2)
			default:
				require.Len(t, forms, 1, "all steps share one Form")
			}
			if name == "RAdam" {
				for _, n := range forms {
					require.Less(t, n, 9, "the first updates have no Form")
				}
			}
		})
	}
}

// Spend is Step with the mean of summed gradients, which are 0 afterwards, whether or not the
// backend can update whole arenas.
func TestSpendEqualsStep(t *testing.T) {
	for name, o := range map[string]optim.Optimizer{
		"SGD": optim.DefaultSGD(.1), "Adam": optim.DefaultAdam(), "RAdam": optim.DefaultRAdam(), "not Recordable": plain{optim.DefaultAdam()},
	} {
		t.Run(name, func(t *testing.T) {
			b := cpu.New(cpu.Options{})
			defer b.Close()
			stepped, spent := perceptron(t, b), perceptron(t, b)
			states := []*optim.State{optim.NewState(b, stepped, o), optim.NewState(b, spent, o)}
			for step := range 9 {
				for i := range stepped.Grads.Float32s() {
					mean := float32(i%7-3) * float32(step+1) / 1024 // too small to be clipped
					stepped.Grads.Float32s()[i], spent.Grads.Float32s()[i] = mean, 4*mean
				}
				optim.Step(o, byParameter{b}, stepped, states[0])
				optim.Spend(o, b, spent, states[1], .25)
				require.Equal(t, step+1, states[1].Step)
				require.Equal(t, stepped.Values.Float32s(), spent.Values.Float32s(), "step %d", step)
				for slot, want := range states[0].Slots {
					require.Equal(t, want.Float32s(), states[1].Slots[slot].Float32s(), "%s, step %d", slot, step)
				}
				for _, q := range spent.List {
					require.Zero(t, slices.Max(q.Grads.Float32s()), "%s, step %d", q.Name, step)
					require.Zero(t, slices.Min(q.Grads.Float32s()), "%s, step %d", q.Name, step)
				}
			}
		})
	}
}

// plain is an Optimizer that cannot describe its updates.
type plain struct{ optim.Optimizer }

// Without a second moment, Adam is SGD: nothing corrects the learn rate.
func TestAdamWithoutMoments(t *testing.T) {
	a, s := optim.DefaultAdam(), optim.DefaultSGD(.001)
	a.Beta2 = nil
	for step := range 3 {
		got, form := a.Hyper(step)
		want, wantForm := s.Hyper(step)
		require.Equal(t, want, got)
		require.Equal(t, wantForm, form)
	}
}

// perceptron returns the parameters of a small network.
func perceptron(t *testing.T, b nn.Backend) *nn.Params {
	m, err := nn.NewClassifier(b, models.ReluReluSoftmax(9, 0), []int{5}, 3, 1)
	require.NoError(t, err)
	return m.Params()
}
