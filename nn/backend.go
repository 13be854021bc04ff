package nn

import "context"

// A Backend owns memory and computes on it in call order. Kernels and allocations return
// no error and may be asynchronous: Sync waits and returns the first failure since the
// last Sync. A Backend belongs to one goroutine at a time.
//
// Matrices are row-major without gaps. A method that takes Buffers of rows derives their
// number from the lengths. Mismatched lengths are a programming error, and a kernel may
// panic on them: layers rule them out in Init, and models when they check a batch. Unless
// stated otherwise, a result may be the same Buffer as an operand but must not partly
// overlap one.
//
// The same calls on the same values give the same bits on every run.
type Backend interface {
	Memory
	Dense
	Conv
	Activations
	Norms
	Sequences
	Combine
	Update
	// Record runs fn once and returns a function that repeats fn's kernels on the same
	// Buffers; on a host that may be fn itself. key names the recording in errors and
	// traces. Apart from the contents of Buffers, fn must not depend on Go values that
	// change between repetitions.
	Record(key string, fn func() error) (func() error, error)
	// Do runs fn on the thread that the backend needs and returns its error, or ctx's
	// error if fn did not start. If the backend is bound to a thread, call all other
	// methods from inside fn.
	Do(ctx context.Context, fn func() error) error
	// Sync waits until all work queued so far has finished, or until ctx ends, and then
	// returns its cause.
	Sync(ctx context.Context) error
	// Fail makes the next Sync return err, unless something failed before. It is for
	// layers that compute without kernels: Forward cannot return an error.
	Fail(err error)
	// Close frees all memory. Do not use the backend afterwards.
	Close() error
}

// Memory is the part of a Backend that owns Buffers. Every Buffer it returns is aligned
// to 64 bytes.
type Memory interface {
	// Alloc returns n zeroed float32 that live until Close.
	Alloc(n int) Buffer
	// AllocInts returns n zeroed int32 that live until Close.
	AllocInts(n int) Buffer
	// Temp returns n float32 with undefined contents that live until Recycle.
	Temp(n int) Buffer
	// Recycle frees everything that Temp has returned.
	Recycle()
	// Copy sets dst to src. The caller may reuse src on return.
	Copy(dst Buffer, src []float32)
	// CopyInts sets dst to src. The caller may reuse src on return.
	CopyInts(dst Buffer, src []int32)
	// Read waits for the preceding work and sets dst to src.
	Read(dst []float32, src Buffer)
	// Zero sets every element of b to 0, whatever its type.
	Zero(b Buffer)
}

// A Sharer is a Backend that can place gradients in memory that other processes access
// directly, so that they can be summed without copying.
type Sharer interface {
	// AllocShared is Alloc in such memory.
	AllocShared(n int) Buffer
}

// A Releaser is a Backend that can give temporary memory out again before Recycle. Memory
// that was in use a moment ago is still in a cache.
type Releaser interface {
	// Release says that nobody will read or write a Buffer from Temp again before Recycle.
	// It ignores other Buffers, and parts of Buffers.
	Release(b Buffer)
}

// Dense is the arithmetic of layers whose input is a matrix.
type Dense interface {
	// Gemm sets c = op(a)·op(b) + beta·c. c is m×n, op(a) is m×k and op(b) is k×n. With
	// transA, a is k×m and op(a) is its transpose; with transB, b is n×k. If beta is 0,
	// the previous contents of c do not matter. c overlaps neither a nor b.
	Gemm(c, a, b Buffer, m, n, k int, transA, transB bool, beta float32)
	// AddBias adds bias to every row of y: y[i,j] += bias[j].
	AddBias(y, bias Buffer)
	// SumRows adds the rows of y to sum, in row order: sum[j] += Σᵢ y[i,j].
	SumRows(sum, y Buffer)
	// Rescale sets y = scale·x + shift.
	Rescale(y, x Buffer, scale, shift float32)
	// Relu sets y = 0 where x <= 0 and y = x elsewhere, so NaN stays NaN.
	Relu(y, x Buffer)
	// ReluGrad sets dx = 0 where y <= 0 and dx = scale·dy elsewhere. With scale
	// 1/(1-rate) it is the gradient of Relu followed by Dropout in place.
	ReluGrad(dx, dy, y Buffer, scale float32)
	// Dropout sets y[i,j] = x[i,j]/(1-rate) where U >= rate and 0 elsewhere, for rows of
	// the given width. U is the upper 24 bits of word j mod 4 of s.Draw(layer, i, j/4),
	// as a fraction in [0, 1). 1/(1-rate) is rounded to float32; rate is in [0, 1).
	// Dropout of dy is its gradient.
	Dropout(y, x Buffer, width int, rate float32, layer uint32, s Stream)
	// Softmax sets each row of the given width to
	// y[j] = exp(x[j]-max x) / Σₖ exp(x[k]-max x).
	Softmax(y, x Buffer, width int)
	// CrossEntropy adds Σᵢ -log(max(p[i, labels[i]], 2⁻¹²⁶)) to loss[0]. Unless dlogits
	// is empty, it also sets dlogits[i,j] = p[i,j] - (1 if j = labels[i] else 0), which
	// is the gradient with respect to the logits if p is their Softmax. Labels are int32
	// in [0, columns of p).
	CrossEntropy(dlogits, loss, p, labels Buffer)
	// SmoothedCrossEntropy is CrossEntropy with q[i,j] = 1-smoothing if j = labels[i], and
	// smoothing/(columns of p - 1) elsewhere, both rounded to float32. It adds
	// Σᵢⱼ -q[i,j]·log(max(p[i,j], 2⁻¹²⁶)) to loss[0], and the gradient is p - q.
	SmoothedCrossEntropy(dlogits, loss, p, labels Buffer, smoothing float32)
	// SquaredError adds Σᵢ (y[i]-t[i])²/2 to loss[0]. Unless dy is empty, it also sets
	// dy[i] = y[i] - t[i], which is the gradient with respect to y.
	SquaredError(dy, loss, y, t Buffer)
	// HuberError is SquaredError with δ·(|y[i]-t[i]| - δ/2) where |y[i]-t[i]| > δ (Huber,
	// 1964). The gradient is y[i] - t[i], limited to ±δ. A NaN stays NaN.
	HuberError(dy, loss, y, t Buffer, delta float32)
	// AbsoluteError is SquaredError with |y[i]-t[i]|. The gradient is 1 where y[i] > t[i],
	// -1 where y[i] < t[i], 0 where they are equal, and NaN otherwise.
	AbsoluteError(dy, loss, y, t Buffer)
	// Correct adds to count[0] the number of rows whose first largest score is at the
	// index given by the row's label.
	Correct(count, scores, labels Buffer)
}

// Conv is the arithmetic of layers whose input is rows of images. Rows are independent:
// the result for one row has the same bits whatever the other rows hold. It has the same
// bits for any number of rows, except in large convolutions that a backend leaves to a
// library, as gpu does with cuDNN.
type Conv interface {
	// Conv2D sets y[r,o,i,j] = b[o] + Σ w[o,c,u,v]·x[r,c,i',j'] over c, u and v. (i', j')
	// is element (u, v) of the window at (i, j), and x is 0 outside the image. Rows of y
	// are (b.Len(), OutHeight, OutWidth); w is (b.Len(), Channels, Size, Size). y is not
	// x.
	Conv2D(y, x, w, b Buffer, s Window)
	// Conv2DGrad adds the gradients of w and b to dw and db. Where dy is 0, a backend
	// may skip x.
	Conv2DGrad(dw, db, dy, x Buffer, s Window)
	// Conv2DInputGrad sets dx to the gradient of x. dx is not dy.
	Conv2DInputGrad(dx, dy, w Buffer, s Window)
	// MaxPool sets y[r,c,i,j] to the largest element of plane c in the part of the window
	// at (i, j) that lies inside the image; NaN if any of them is NaN. y is not x.
	MaxPool(y, x Buffer, s Window)
	// MaxPoolGrad sets dx to the gradient of x, where y is MaxPool of x. Each dy is added
	// to the first element of its window, in row-major order, that equals y, or that is
	// NaN if y is NaN.
	MaxPoolGrad(dx, dy, x, y Buffer, s Window)
	// AvgPool sets y[r,c,i,j] = Σ·(1/Size²), where Σ adds the elements of plane c in the
	// part of the window at (i, j) that lies inside the image, in row-major order. 1/Size²
	// is rounded to float32. y is not x.
	AvgPool(y, x Buffer, s Window)
	// AvgPoolGrad sets dx to the gradient of x: the sum of dy·(1/Size²) over the windows
	// that cover an element, in row-major order. dx is not dy.
	AvgPoolGrad(dx, dy Buffer, s Window)
}

// Update is the arithmetic of optimizers, on a whole parameter or on blocks of it.
type Update interface {
	// Scale sets y = a·y.
	Scale(y Buffer, a float32)
	// Axpy sets y = a·x + y.
	Axpy(y Buffer, a float32, x Buffer)
	// SquaredNorm sets sums[k] = Σᵢ (g[i] + l2·w[i])² over block k of BlockSize elements,
	// summed in float64 and rounded once; l2 is hyper[HyperL2]. The result for a block
	// does not depend on which other blocks the call covers.
	SquaredNorm(sums, g, w, hyper Buffer)
	// Adam does one step of Thinc's Adam. Let h = hyper and g' = g + h[L2]·w, and let
	// norm be the square root of the float64 sum of norms in block order. If h[Clip] > 0
	// and norm >= h[Clip], g' is scaled by h[Clip]/norm. Then
	//
	//	m = h[Beta1]·m + h[Mix1]·g'
	//	v = h[Beta2]·v + h[Mix2]·g'²
	//	w = w - h[Rate]·m/(√v + h[Eps])
	//	w = w - h[Decay]·w
	//	average = average - h[Average]·(average - w), unless average is empty
	//
	// where an m or v smaller than 2⁻¹²⁶ in magnitude becomes 0. norms covers the whole
	// parameter even if w is only a part of it; it is not read if h[Clip] is 0. g does
	// not change.
	Adam(w, g, m, v, average, norms, hyper Buffer)
	// SGD is Adam with w = w - h[Rate]·g' in place of the first three lines.
	SGD(w, g, average, norms, hyper Buffer)
}
