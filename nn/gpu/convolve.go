package gpu

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ringtrain/ringtrain/cuda"
)

// LeastForCuDNN is the smallest convolution, in multiply-adds, that cuDNN computes unless
// Options say otherwise. It is an estimate, not measured: for smaller convolutions our
// kernels may take no longer than launching cuDNN's several kernels.
const LeastForCuDNN = 1 << 24

// ours is the way of a convolution that our kernels compute. Any other way is the number
// of a cuDNN algorithm.
const ours = -1

// convolutions holds cuDNN's plans, and the way each kind of convolution is computed.
type convolutions struct {
	dnn    *cuda.DNN // nil if there is none
	sought bool      // seek has been called
	plans  map[cuda.Convolution]*cuda.ConvPlan
	ways   map[string]int
}

// A conv is a convolution that cuDNN or our kernels can compute.
type conv struct {
	method string
	cuda.Convolution
	at   cuda.ConvOperands
	ours func() // queues the whole convolution with our kernels
	rest func() // queues what cuDNN leaves to our kernels; may be nil
}

// convolve queues a convolution. trial returns the same convolution on operands that
// timing may overwrite.
func (b *Backend) convolve(c conv, trial func() conv) {
	if b.failure != nil {
		return
	}
	way := ours
	if c.at.Aligned() {
		way = b.way(c, trial)
	}
	if way == ours || b.failure != nil {
		c.ours()
		return
	}
	b.queue(c.method, func(s cuda.Stream) error {
		plan, err := b.convolutions.plan(c.Convolution)
		if err != nil {
			return err
		}
		return plan.Run(s, way, c.at)
	})
	if c.rest != nil {
		c.rest()
	}
}

// plan returns the plan of a convolution. It may be called during a capture.
func (v *convolutions) plan(c cuda.Convolution) (*cuda.ConvPlan, error) {
	if plan := v.plans[c]; plan != nil {
		return plan, nil
	}
	if len(v.plans) >= mostPlans {
		v.forget()
	}
	plan, err := v.dnn.Plan(c)
	if err == nil {
		v.plans[c] = plan
	}
	return plan, err
}

// forget destroys all plans. Captured graphs do not need them.
func (v *convolutions) forget() {
	for _, plan := range v.plans {
		plan.Destroy()
	}
	clear(v.plans)
}

func (v *convolutions) close() error {
	v.forget()
	if v.dnn == nil {
		return nil
	}
	return v.dnn.Destroy()
}

// way decides how a convolution is computed: as in an earlier run, else the fastest way if
// Options.Timed is set, else with cuDNN's own first choice if it is large enough.
func (b *Backend) way(c conv, trial func() conv) int {
	v := &b.convolutions
	key := c.Kind(b.options.TF32)
	if way, ok := v.ways[key]; ok {
		return way
	}
	way, given := b.options.Choices[key]
	least := b.options.LeastForCuDNN
	if least == 0 {
		least = LeastForCuDNN
	}
	if !given && (least < 0 || (!b.options.Timed && c.MultiplyAdds() < least)) {
		return ours
	}
	recording := b.recording
	b.recording = nil // trials must not become part of it
	defer func() { b.recording = recording }()
	there := b.seek()
	switch {
	case given && way != ours:
		b.note(c.method, b.offered(c, way))
	case given:
	case !there:
		return ours
	default:
		way = b.try(c, trial)
	}
	v.ways[key] = way
	b.reportChoices()
	return way
}

// seek starts cuDNN at its first call and reports whether cuDNN can be used. If cuDNN is
// installed but does not work, seek calls Options.Notice.
func (b *Backend) seek() bool {
	v := &b.convolutions
	if v.sought {
		return v.dnn != nil
	}
	v.sought = true
	dnn, err := b.device.NewDNN(cuda.DNNOptions{TF32: b.options.TF32})
	if err == nil {
		v.dnn = dnn
		return true
	}
	if b.options.Notice != nil && !errors.Is(err, cuda.ErrNotInstalled) {
		why := strings.TrimPrefix(err.Error(), cuda.ErrUnavailable.Error()+": ")
		b.options.Notice("convolutions use ringtrain's own kernels, which are slower: " + why)
	}
	return false
}

// offered checks that cuDNN offers the algorithm that an earlier run chose.
func (b *Backend) offered(c conv, way int) error {
	err := errors.New("cuDNN is not available")
	if b.convolutions.dnn != nil {
		var plan *cuda.ConvPlan
		if plan, err = b.convolutions.plan(c.Convolution); err == nil {
			if slices.Contains(plan.Algorithms(), way) {
				return nil
			}
			err = errors.New("cuDNN does not offer it")
		}
	}
	return fmt.Errorf("algorithm %d, chosen for %s, cannot be used: the choices are from another device or another cuDNN: %w", way, c.Kind(b.options.TF32), err)
}

// try returns the first algorithm that works or, with Options.Timed, the fastest way. It
// returns ours if cuDNN supports none.
func (b *Backend) try(c conv, trial func() conv) int {
	plan, err := b.convolutions.plan(c.Convolution)
	if err != nil || len(plan.Algorithms()) == 0 {
		return ours
	}
	t := trial()
	best, least := ours, time.Duration(0)
	if b.options.Timed {
		if least, err = b.device.Time(b.stream, func() error { t.ours(); return b.failure }); err != nil {
			b.note(c.method, err)
			return ours
		}
	}
	for _, algorithm := range plan.Algorithms() {
		took, err := b.measure(t, func() error { return plan.Run(b.stream, algorithm, t.at) })
		switch {
		case err != nil:
		case !b.options.Timed:
			return algorithm
		case took < least:
			best, least = algorithm, took
		}
	}
	return best
}

// measure runs a trial on cuDNN, even in a capture. With Options.Timed it returns the time
// that the trial took. An error means that the algorithm cannot be used.
func (b *Backend) measure(t conv, run func() error) (took time.Duration, err error) {
	if err := run(); err != nil { // also loads cuDNN's kernels, which a capture forbids
		return 0, err
	}
	if b.options.Timed {
		return b.device.Time(b.stream, func() error {
			if err := run(); err != nil {
				return err
			}
			if t.rest != nil {
				t.rest()
			}
			return b.failure
		})
	}
	g, err := b.stream.Capture(run)
	if err != nil {
		return 0, err
	}
	return 0, g.Destroy()
}
