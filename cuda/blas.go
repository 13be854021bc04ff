package cuda

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"sync"
	"time"
)

// BLASOptions say how products are computed.
type BLASOptions struct {
	// TF32 lets float32 products round their factors to 10 bits of fraction, for tensor
	// cores. By an H200's datasheet that is about eight times as fast.
	TF32 bool
	// Workspace is the number of bytes of device memory for cuBLASLt; 0 means 32 MiB.
	Workspace int
	// Choices is what BLAS.Choices returned in an earlier run, on the same kind of device
	// with the same cuBLASLt. Products that it lists are not timed and have the bits of
	// that run.
	Choices map[string]int
	// Untimed uses cuBLASLt's own first choice for products that Choices does not list.
	// This gives the same bits in each run, but is not always the fastest.
	Untimed bool
}

// BLAS computes matrix products with cuBLASLt, on one stream.
type BLAS struct {
	handle    uintptr
	device    *Device
	workspace Ptr
	size      int
	options   BLASOptions
	choices   map[string]int
}

// lt is cuBLASLt in this process.
var lt struct {
	search sync.Mutex // held by searches, which set library to each candidate
	tried  bool       // library has started on a device; the search is over

	sync.Mutex // for library
	library    *Shared
}

// openBLAS loads cuBLASLt. start starts it on a device. If start is nil, openBLAS loads the
// first library with all functions, and a later call with start may load another one.
func openBLAS(start func() error) error {
	lt.search.Lock()
	defer lt.search.Unlock()
	switch known := theBLAS(); {
	case known != nil && start == nil:
		return nil
	case known != nil && lt.tried:
		return start()
	}
	_, err := CublasLt.Open(func(s *Shared) error {
		setBLAS(nil)
		if err := bindBLAS(s); err != nil {
			return err
		}
		setBLAS(s)
		if start == nil {
			return nil
		}
		s.started = true
		err := start()
		if err != nil {
			setBLAS(nil)
		}
		lt.tried = err == nil
		return err
	})
	return err
}

func theBLAS() *Shared {
	lt.Lock()
	defer lt.Unlock()
	return lt.library
}

func setBLAS(s *Shared) {
	lt.Lock()
	defer lt.Unlock()
	lt.library = s
}

const defaultWorkspace = 32 << 20

// NewBLAS starts cuBLASLt. Run all its products on one stream, because they share a
// workspace.
func (d *Device) NewBLAS(o BLASOptions) (*BLAS, error) {
	b := &BLAS{device: d, size: o.Workspace, options: o, choices: map[string]int{}}
	if b.size == 0 {
		b.size = defaultWorkspace
	}
	var err error
	if b.workspace, err = d.Alloc(b.size); err != nil {
		return nil, fmt.Errorf("workspace of cuBLASLt: %w", err)
	}
	if err := openBLAS(b.start); err != nil {
		_ = d.Free(b.workspace) // err is the cause
		return nil, err
	}
	return b, nil
}

// start creates the handle of the library that is loaded.
func (b *BLAS) start() (err error) {
	if b.handle, err = blasCreate(); err != nil {
		if newer := blasMismatch(); newer != nil {
			err = fmt.Errorf("%w: %w", err, newer)
		}
		return err
	}
	if err = b.probe(); err != nil {
		_ = blasDestroy(b.handle) // err is the cause
	}
	return err
}

// probe checks that cuBLASLt has any kernel for the device. A cuBLASLt older than the
// device starts without an error, but has none. Nothing is computed.
func (b *BLAS) probe() error {
	p := Product{M: 16, N: 16, K: 16, A: b.workspace, B: b.workspace, C: b.workspace}
	made, err := b.prepare(p)
	made.release()
	if err != nil {
		return fmt.Errorf("product %s: %w", p.key(b.options.TF32), err)
	}
	return nil
}

// prepare prepares a product. It is an error if cuBLASLt has no candidate for it.
func (b *BLAS) prepare(p Product) (prepared, error) {
	made, err := prepare(b, p)
	if err == nil && made.count() == 0 {
		err = &Error{Call: "cublasLtMatmulAlgoGetHeuristic", Name: "CUBLAS_STATUS_NOT_SUPPORTED", Code: 15}
	}
	if err != nil {
		err = fmt.Errorf("%w: %v has no kernel for it: update it, or set %s to another file", err, whichBLAS(), CublasLt.Variable)
	}
	return made, err
}

// Destroy frees the workspace. Call it when no product is running, and no graph with one
// will be launched again.
func (b *BLAS) Destroy() error {
	err := blasDestroy(b.handle)
	if freed := b.device.Free(b.workspace); err == nil {
		err = freed
	}
	return err
}

// Choices returns which of cuBLASLt's candidates each kind of product uses, for logs and
// for a later run that must have the same bits.
func (b *BLAS) Choices() map[string]int { return maps.Clone(b.choices) }

// A Number is the type of a matrix's elements.
type Number int

// The types of numbers. Sums are always in float32.
const (
	Float32s Number = iota
	BFloat16s
	BFloat16Factors // bfloat16 in A and B, float32 in C and Bias
)

// String returns the name of the type.
func (n Number) String() string { return [...]string{"f32", "bf16", "bf16 to f32"}[n] }

// An Epilogue is an operation that a matrix product includes.
type Epilogue int

// The epilogues, for a row-major C of m rows and n columns.
const (
	// None is the product alone.
	None Epilogue = iota
	// Bias adds Bias, of n elements, to each row of C.
	Bias
	// BiasRelu adds Bias and replaces negative elements by 0.
	BiasRelu
	// BiasReluMask is BiasRelu, and records in Mask which elements of C are positive.
	BiasReluMask
	// ReluGrad sets the elements of C to 0 that were not positive according to Mask.
	ReluGrad
	// RowSums sets Bias, of m elements, to the sums of the rows of op(A): the
	// gradient of a bias, when C is the gradient of a weight.
	RowSums
)

// String returns the name of the epilogue.
func (e Epilogue) String() string {
	return [...]string{"none", "bias", "bias+relu", "bias+relu+mask", "relu-grad", "row-sums"}[e]
}

// A Product is C = op(A)·op(B) + Beta·C with an epilogue, as nn.Dense defines it. The
// matrices are row-major without gaps. C is M×N, op(A) is M×K and op(B) is K×N. With
// TransA, A is stored as K×M, and with TransB, B is stored as N×K.
type Product struct {
	M, N, K        int
	TransA, TransB bool
	Beta           float32
	Epilogue       Epilogue
	Type           Number // of A, B, C and Bias
	A, B, C        Ptr    // fastest at multiples of 64, with rows of a multiple of 16 bytes
	Bias, Mask     Ptr    // operands of the epilogue, at multiples of 16
}

// bestAlignment is the alignment in bytes of all memory of a backend. Promising cuBLASLt
// more gains nothing, and different promises can get different candidates.
const bestAlignment = 64

// alignment returns the common alignment of all matrices, at most bestAlignment.
func (p Product) alignment() int {
	all := p.A | p.B | p.C | bestAlignment
	return int(all & -all) // the lowest bit
}

// fusible reports whether the epilogue's operands are aligned as cuBLASLt requires.
func (p Product) fusible() bool { return (p.Bias|p.Mask)%epilogueAlignment == 0 }

const epilogueAlignment = 16

// MaskBytes returns the size in bytes of a Mask for m rows and n columns. It has a bit for
// each element, and rows begin at multiples of 128 bits.
func MaskBytes(m, n int) int { return m * maskWidth(n) / 8 }

func maskWidth(n int) int { return (n + 127) / 128 * 128 }

// key names the kind of product. A choice holds for all products of a kind.
func (p Product) key(tf32 bool) string {
	letters := func(t bool) string {
		if t {
			return "t"
		}
		return "n"
	}
	kind := p.Type.String()
	if tf32 && p.Type == Float32s {
		kind = "tf32"
	}
	key := fmt.Sprintf("%dx%dx%d %s%s %s %s beta %v", p.M, p.N, p.K, letters(p.TransA), letters(p.TransB), kind, p.Epilogue, p.Beta)
	if a := p.alignment(); a < bestAlignment {
		key += fmt.Sprintf(" at multiples of %d", a)
	}
	return key
}

// Kind names the kind of product as Choices does.
func (b *BLAS) Kind(p Product) string { return p.key(b.options.TF32) }

// A Plan is a product that is ready to run.
type Plan struct {
	blas    *BLAS
	product Product
	made    prepared
	fused   bool
}

// Plan prepares a product. If cuBLASLt has several candidates, none was chosen before, and
// Untimed is not set, Plan runs each on the product's own memory to find the fastest one
// that works. Then C, and what the epilogue writes, are undefined afterwards. Plan cannot
// be captured.
// If cuBLASLt has no kernel with the epilogue, the Plan is for the product alone, see Fused.
func (b *BLAS) Plan(s Stream, p Product) (*Plan, error) {
	if p.M < 1 || p.N < 1 || p.K < 1 {
		return nil, fmt.Errorf("cuda: product of %d×%d by %d×%d: sizes must be positive", p.M, p.K, p.K, p.N)
	}
	var made prepared
	var err error
	fused := p.Epilogue == None || p.fusible()
	if fused {
		made, err = b.prepare(p)
	}
	if (err != nil || !fused) && p.Epilogue != None { // whatever the status: versions differ
		made.release()
		p.Epilogue, p.Bias, p.Mask, fused = None, 0, 0, false
		made, err = b.prepare(p)
	}
	plan := &Plan{b, p, made, fused}
	if err == nil {
		err = plan.choose(s)
	}
	if err != nil {
		made.release()
		return nil, fmt.Errorf("product %s: %w", p.key(b.options.TF32), err)
	}
	return plan, nil
}

// whichBLAS names cuBLASLt with its version and file.
func whichBLAS() string {
	library := theBLAS()
	if library == nil {
		return CublasLt.Name
	}
	return fmt.Sprintf("%s %s (%s)", CublasLt.Name, blasVersionText(blasVersion()), library.Path)
}

// choose selects a candidate: the one chosen before, the fastest, or the first.
func (p *Plan) choose(s Stream) error {
	b, key := p.blas, p.product.key(p.blas.options.TF32)
	choice, known := b.choices[key]
	if !known {
		choice, known = b.options.Choices[key]
	}
	if !known && !b.options.Untimed && p.made.count() > 1 {
		var err error
		if choice, err = p.fastest(s); err != nil {
			return err
		}
	}
	if choice < 0 || choice >= p.made.count() {
		return fmt.Errorf("candidate %d was chosen, but there are only %d: the choices are from another device or another cuBLASLt", choice, p.made.count())
	}
	p.made.choice = choice
	b.choices[key] = choice
	return nil
}

// fastest times the candidates and returns the fastest. It skips those that fail, because
// cuBLASLt may offer a candidate that it then refuses to run.
func (p *Plan) fastest(s Stream) (best int, err error) {
	var least time.Duration
	var first error // the first failure
	works := false
	for i := range p.made.count() {
		p.made.choice = i
		took, err := p.blas.device.Time(s, func() error { return p.made.run(p.blas, s) })
		if err != nil {
			if s.Sync(context.Background()) != nil { // the device failed, so all others would, too
				return 0, err
			}
			first = cmp.Or(first, fmt.Errorf("candidate %d: %w", i, err))
			continue
		}
		if !works || took < least {
			best, least, works = i, took, true
		}
	}
	if !works {
		return 0, fmt.Errorf("none of the %d candidates of %s works: update it, or set %s to another file: %w", p.made.count(), whichBLAS(), CublasLt.Variable, first)
	}
	return best, nil
}

// Fused reports whether Run includes the epilogue. If not, Run computes the product alone,
// and the caller must compute the rest. A fused product must not read a Mask that no fused
// product has written.
func (p *Plan) Fused() bool { return p.fused }

// Run queues the product on s. It can be captured, but not the first time that a candidate
// runs, because cuBLASLt then loads its kernel.
func (p *Plan) Run(s Stream) error {
	if err := p.made.run(p.blas, s); err != nil {
		return fmt.Errorf("product %s: %w", p.product.key(p.blas.options.TF32), err)
	}
	return nil
}

// Destroy frees the plan. Graphs that captured it remain valid.
func (p *Plan) Destroy() { p.made.release() }
