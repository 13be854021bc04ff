package gpu

import (
	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/nn"
)

// mostPlans bounds the number of cached plans. A plan is for fixed addresses, so shapes
// that vary would make new ones without end.
const mostPlans = 4096

// products caches plans of matrix products by everything that they depend on.
type products struct {
	blas  *cuda.BLAS
	timed bool
	plans map[cuda.Product]*cuda.Plan
	given map[string]int        // choices of an earlier run
	fused map[string]int        // 1 for kinds of fusion that are one product, 0 for others
	masks map[cuda.Ptr]cuda.Ptr // from an output of Affine to the mask that ReluInputGrad needs
}

func (p *products) open(d *cuda.Device, o Options) (err error) {
	p.plans, p.timed = map[cuda.Product]*cuda.Plan{}, o.Timed
	p.given, p.fused, p.masks = o.Choices, map[string]int{}, map[cuda.Ptr]cuda.Ptr{}
	p.blas, err = d.NewBLAS(cuda.BLASOptions{TF32: o.TF32, Choices: o.Choices, Untimed: !o.Timed})
	return err
}

// plan returns the plan of a product. It may be called during a capture if a product of
// the same kind was planned before.
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

// forget destroys all plans. Captured graphs do not need them.
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

// Gemm implements nn.Dense with cuBLASLt.
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
			b.reportChoices()
		}
		return plan.Run(s)
	})
}

// rehearse times a product that adds to C. It does so on another C, because timing
// changes it. The choice then holds for all products of this kind.
func (b *Backend) rehearse(p cuda.Product) {
	if b.failure != nil || !b.products.timed || b.products.plans[p] != nil {
		return
	}
	recording := b.recording
	b.recording = nil // trials must not become part of it
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

// substitute returns n zeros that trials use instead of the elements at an address. They
// are no better aligned, because cuBLASLt's candidates depend on alignment.
func (b *Backend) substitute(at cuda.Ptr, n int) cuda.Ptr {
	const line = 64 // bytes; better alignment makes no difference
	v := b.Temp(n + line/elementBytes)
	b.Zero(v)
	return b.ptr(v) + at%line
}
