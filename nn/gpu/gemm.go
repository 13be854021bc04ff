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
	given map[string]int        // choices of an earlier run
	fused map[string]int        // 1 for kinds of fusion that are one product, 0 for others
	masks map[cuda.Ptr]cuda.Ptr // where Affine has left those for ReluInputGrad
}

func (p *products) open(d *cuda.Device, o Options) (err error) {
	p.plans, p.timed = map[cuda.Product]*cuda.Plan{}, o.Timed
	p.given, p.fused, p.masks = o.Choices, map[string]int{}, map[cuda.Ptr]cuda.Ptr{}
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
	product := cuda.Product{
		M: m, N: n, K: k, TransA: transX, TransB: transY, Beta: beta, Type: b.number(), A: b.factor(x), B: b.factor(y), C: b.ptr(c),
	}
	if beta != 0 {
		b.rehearse(product)
	}
	b.multiply("Gemm", product)
}

// multiply queues a product.
func (b *Backend) multiply(method string, product cuda.Product) {
	b.queue(method, func(s cuda.Stream) error {
		known := b.products.plans[product] != nil
		plan, err := b.products.plan(s, product)
		if err != nil {
			return err
		}
		if !known {
			b.tell()
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
	recording := b.recording
	b.recording = nil // it does not have the trials
	defer func() { b.recording = recording }()
	if p.C = b.substitute(p.C, p.M*p.N); b.failure != nil {
		return
	}
	plan, err := b.products.blas.Plan(b.stream, p)
	if err != nil {
		b.note("Gemm", err)
		return
	}
	plan.Destroy()
}

// substitute is memory for trials in place of n elements at an address, full of
// zeros and no better aligned: candidates depend on that.
func (b *Backend) substitute(at cuda.Ptr, n int) cuda.Ptr {
	const line = 64 // bytes, beyond which alignment does not matter
	v := b.Temp(n + line/elementBytes)
	b.Zero(v)
	return b.ptr(v) + at%line
}
