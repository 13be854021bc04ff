package gpu

import (
	"fmt"

	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/nn"
)

var _ nn.Fuser = (*Backend)(nil)

// A fusion is a product with an epilogue. It can also run as separate steps, if cuBLASLt
// has no kernel with the epilogue or only a slower one.
type fusion struct {
	method  string
	product cuda.Product // with the epilogue
	fused   func()       // queues what remains after the fused product; may be nil
	split   func()       // queues what remains after the plain product
}

// plain returns the product without the epilogue.
func (f fusion) plain() cuda.Product {
	p := f.product
	p.Epilogue, p.Bias, p.Mask = cuda.None, 0, 0
	return p
}

// one queues the fused form.
func (f fusion) one(b *Backend) {
	b.multiply(f.method, f.product)
	if f.fused != nil {
		f.fused()
	}
}

// steps queues the separate steps.
func (f fusion) steps(b *Backend) {
	b.multiply(f.method, f.plain())
	f.split()
}

// fuse queues a fusion and reports whether it was one product. trial returns one of the
// same kind that timing may run any number of times.
func (b *Backend) fuse(f fusion, trial func() fusion) bool {
	if b.failure != nil {
		return false
	}
	if b.asOne(f, trial) && b.failure == nil {
		f.one(b)
		return true
	}
	if f.product.Beta != 0 {
		b.rehearse(f.plain())
	}
	f.steps(b)
	return false
}

// asOne decides whether fusions of a kind are one product. An earlier run's choice
// comes first. Otherwise they are if cuBLASLt has a kernel and, with Options.Timed, if
// that is faster.
func (b *Backend) asOne(f fusion, trial func() fusion) bool {
	p := &b.products
	key := f.method + " as one " + p.blas.Kind(f.product)
	if choice, ok := p.fused[key]; ok {
		return choice == 1
	}
	recording := b.recording
	b.recording = nil // trials must not become part of it
	defer func() { b.recording = recording }()
	if p.timed {
		f = trial()
	}
	plan, err := p.blas.Plan(b.stream, f.product)
	if err != nil {
		b.note(f.method, err)
		return false
	}
	fused := plan.Fused()
	plan.Destroy()
	choice, known := p.given[key]
	switch {
	case known && choice == 1 && !fused:
		b.note(f.method, fmt.Errorf("%s was chosen, but cuBLASLt has no such kernel: the choices are from another device or another cuBLASLt", key))
	case !known && fused && (!p.timed || b.faster(f)):
		choice = 1
	}
	p.fused[key] = choice
	b.reportChoices()
	return choice == 1
}

// faster times both forms of a trial and reports whether the fused one is no slower.
func (b *Backend) faster(trial fusion) bool {
	for _, product := range []cuda.Product{trial.product, trial.plain()} { // choose kernels now: Time captures, and a capture cannot try candidates
		if _, err := b.products.plan(b.stream, product); err != nil {
			b.note(trial.method, err)
			return false
		}
	}
	one, err := b.device.Time(b.stream, func() error { trial.one(b); return b.failure })
	if err != nil {
		b.note(trial.method, err)
		return false
	}
	steps, err := b.device.Time(b.stream, func() error { trial.steps(b); return b.failure })
	b.note(trial.method, err)
	return one <= steps
}

// Affine implements nn.Fuser.
func (b *Backend) Affine(y, x, w, bias nn.Buffer, relu, gate bool) {
	n, columns := rows("Affine", y, bias.Len()), bias.Len()
	need("Affine", w.Len()%columns == 0 && x.Len() == n*(w.Len()/columns) && (relu || !gate))
	last := "add_bias"
	if relu {
		last = "add_bias_relu"
	}
	rest := func() { b.launch(last, y.Len(), b.at(y), b.at(bias), count(y.Len()), number(columns)) }
	if y.Len() == 0 || x.Len() == 0 {
		b.Zero(y)
		rest()
		return
	}
	f := fusion{
		method: "Affine", split: rest,
		product: cuda.Product{
			M: n, N: columns, K: x.Len() / n, TransB: true, Type: b.number(), A: b.factor(x), B: b.factor(w), C: b.ptr(y),
			Epilogue: cuda.Bias, Bias: b.ptr(bias),
		},
	}
	delete(b.products.masks, f.product.C)
	switch {
	case gate:
		f.product.Epilogue, f.product.Mask = cuda.BiasReluMask, b.ptr(b.mask(n, columns))
	case relu:
		f.product.Epilogue = cuda.BiasRelu
	}
	if b.fuse(f, func() fusion { return f }) && gate {
		b.products.masks[f.product.C] = f.product.Mask
	}
}

// mask returns temporary memory for the mask of a Relu.
func (b *Backend) mask(rows, columns int) nn.Buffer {
	return b.Temp((cuda.MaskBytes(rows, columns) + elementBytes - 1) / elementBytes)
}

// AffineGrad implements nn.Fuser.
func (b *Backend) AffineGrad(dw, db, dy, x nn.Buffer, zeroed bool) {
	n, columns := rows("AffineGrad", dy, db.Len()), db.Len()
	need("AffineGrad", dw.Len()%columns == 0 && x.Len() == n*(dw.Len()/columns))
	if dy.Len() == 0 || x.Len() == 0 {
		b.SumRows(db, dy)
		return
	}
	beta := float32(1)
	if zeroed {
		beta = 0
	}
	into := func(c cuda.Ptr, db nn.Buffer) fusion {
		sums, add := db, func() {}
		if !zeroed { // an epilogue can only overwrite, so add afterwards
			sums = b.Temp(columns)
			add = func() { b.Axpy(db, 1, sums) }
		}
		return fusion{
			method: "AffineGrad",
			product: cuda.Product{
				M: columns, N: dw.Len() / columns, K: n, TransA: true, Beta: beta, Type: b.number(), A: b.factor(dy), B: b.factor(x), C: c,
				Epilogue: cuda.RowSums, Bias: b.ptr(sums),
			},
			fused: add,
			split: func() { b.SumRows(db, dy) },
		}
	}
	b.fuse(into(b.ptr(dw), db), func() fusion {
		trial := b.Temp(columns)
		b.Zero(trial)
		return into(b.substitute(b.ptr(dw), dw.Len()), trial)
	})
}

// SoftmaxLoss implements nn.Fuser. The order of the loss's sum depends on the
// number of rows.
func (b *Backend) SoftmaxLoss(loss, x, labels nn.Buffer) {
	n := labels.Len()
	need("SoftmaxLoss", loss.Len() == 1 && x.Len()%max(1, n) == 0 && (n > 0 || x.Len() == 0))
	if n == 0 {
		b.Zero(loss)
		return
	}
	const float64s = 2 * 2 // float32 elements for two float64 per row
	losses := b.Temp(float64s * n)
	b.launch("softmax_cross_entropy", n, b.at(x), b.at(x), b.at(loss), cuda.Ptr(0).Arg(), b.at(x), b.at(labels), number(n), number(x.Len()/n), b.at(losses), b.ticket.Arg())
}

// ReluInputGrad implements nn.Fuser.
func (b *Backend) ReluInputGrad(dx, dy, w, x nn.Buffer, rows int) {
	need("ReluInputGrad", dx.Len() == x.Len() && (rows == 0 && dx.Len() == 0 || rows > 0 && dx.Len()/rows*(dy.Len()/rows) == w.Len()))
	switch {
	case dx.Len() == 0:
		return
	case dy.Len() == 0:
		b.Zero(dx)
		return
	}
	f := fusion{
		method: "ReluInputGrad", split: func() { b.ReluGrad(dx, dx, x, 1) },
		product: cuda.Product{
			M: rows, N: dx.Len() / rows, K: dy.Len() / rows, Type: b.number(), A: b.factor(dy), B: b.factor(w), C: b.ptr(dx),
			Epilogue: cuda.ReluGrad, Mask: b.products.masks[b.address(x)],
		},
	}
	if f.product.Mask == 0 { // Affine ran as steps, and left no mask
		f.steps(b)
		return
	}
	b.fuse(f, func() fusion { return f })
}
