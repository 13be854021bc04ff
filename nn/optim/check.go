package optim

import (
	"fmt"
	"math"
)

// A Checker is an Optimizer whose hyper-parameters can be checked before training.
type Checker interface {
	Optimizer
	// Check returns an error that names the first hyper-parameter, and the step counted from 1,
	// whose value is impossible in the given number of steps: negative, not finite, or a beta of 1
	// or more. In long runs it looks at some of the steps only.
	Check(steps int) error
}

var (
	_ Checker = Adam{}
	_ Checker = RAdam{}
	_ Checker = SGD{}
)

// Check implements Checker.
func (a Adam) Check(steps int) error {
	return check(steps, append(betas(a.Beta1, a.Beta2), others(a.LearnRate, a.Eps, a.L2, a.GradClip)...))
}

// Check implements Checker.
func (o RAdam) Check(steps int) error { return Adam(o).Check(steps) }

// Check implements Checker.
func (o SGD) Check(steps int) error { return check(steps, others(o.LearnRate, nil, o.L2, o.GradClip)) }

// A scheduled is a hyper-parameter under its name in configs.
type scheduled struct {
	name     string
	schedule Schedule
	below    float64
}

func betas(first, second Schedule) []scheduled {
	return []scheduled{{"beta1", first, 1}, {"beta2", second, 1}}
}

func others(rate, eps, l2, clip Schedule) []scheduled {
	most := math.Inf(1)
	return []scheduled{{"learn_rate", rate, most}, {"eps", eps, most}, {"L2", l2, most}, {"grad_clip", clip, most}}
}

// checkedSteps is the number of first steps, and of later ones, that Check looks at.
const checkedSteps = 10_000

func check(steps int, all []scheduled) error {
	stride := 1
	for step := 0; step < steps; step += stride {
		for _, h := range all {
			if v := h.schedule.at(step); !(v >= 0 && v < h.below) {
				rule := "at least 0"
				if h.below == 1 {
					rule += " and less than 1"
				}
				return fmt.Errorf("%s is %v in step %d; it must be %s", h.name, v, step+1, rule)
			}
		}
		if step == checkedSteps {
			stride = max(1, (steps-step)/checkedSteps)
		}
	}
	return nil
}
