package gpu

import (
	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/nn"
)

// mostPlans bounds how many plans are kept: a plan is of certain addresses, and
// shapes that vary make new ones all the time.
const mostPlans = 4096

// products are plans of matrix products, by all that they depend on.
type products struct {
	blas  *cuda.BLAS
	timed bool
	plans map[cuda.Product]*cuda.Plan
}

func (p *products) open(d *cuda.Device, o Options) (err error) {
	p.plans, p.timed = map[cuda.Product]*cuda.Plan{}, o.Timed
	p.blas, err = d.NewBLAS(cuda.BLASOptions{TF32: o.TF32, Choices: o.Choices, Untimed: !o.Timed})
	return err
}

// plan returns the plan of a product. Of one whose kind was planned before, it
// may be called in a capture.
func (p *products) plan(s cuda.Stream, product cuda.Product) (*cuda.Plan, error) {
	if plan := p.plans[product]; plan != nil {
		return plan, nil
	}
	if len(p.plans) >= mostPlans {
		p.forget()
	}
	plan, err := p.blas.Plan(s, product)
	if err == nil {
		p.plans[product] = plan
	}
	return plan, err
}

// forget destroys all plans; graphs do not need them.
func (p *products) forget() {
	for _, plan := range p.plans {
		plan.Destroy()
	}
	clear(p.plans)
}

func (p *products) close() error {
	p.forget()
	if p.blas == nil {
		return nil
	}
	return p.blas.Destroy()
}

// Gemm implements nn.Dense by cuBLASLt.
func (b *Backend) Gemm(c, x, y nn.Buffer, m, n, k int, transX, transY bool, beta float32) {
	need("Gemm", c.Len() == m*n && x.Len() == m*k && y.Len() == k*n)
	switch {
	case c.Len() == 0:
		return
	case k == 0 && beta == 0:
		b.Zero(c)
		return
	case k == 0:
		b.Scale(c, beta)
		return
	}
	product := cuda.Product{M: m, N: n, K: k, TransA: transX, TransB: transY, Beta: beta, A: b.ptr(x), B: b.ptr(y), C: b.ptr(c)}
	if beta != 0 {
		b.rehearse(product)
	}
	b.queue("Gemm", func(s cuda.Stream) error {
		plan, err := b.products.plan(s, product)
		if err != nil {
			return err
		}
		return plan.Run(s)
	})
}

// rehearse times a product that adds to C with another C, because the trials
// change it. What they choose then holds for the kind of product.
func (b *Backend) rehearse(p cuda.Product) {
	if b.failure != nil || !b.products.timed || b.products.plans[p] != nil {
		return
	}
	trial := b.Temp(p.M * p.N)
	b.Zero(trial)
	if p.C = b.ptr(trial); b.failure != nil {
		return
	}
	plan, err := b.products.blas.Plan(b.stream, p)
	if err != nil {
		b.note("Gemm", err)
		return
	}
	plan.Destroy()
}
