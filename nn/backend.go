package nn

import "context"

// A Backend owns memory and computes on it, in the order of the calls. Kernels
// and allocations return nothing and may be asynchronous: Sync waits and
// returns the first failure since the last Sync. A Backend belongs to one
// goroutine at a time.
//
// Matrices are row-major without gaps; a method that takes Buffers of rows
// computes their number from the lengths. Lengths that do not fit are a
// programming error for which a kernel may panic: layers exclude it in Init and
// models when they look at a batch. Unless said otherwise a result may be one
// of the operands, and may not overlap it in part.
//
// The same calls on the same values give the same bits on every run.
type Backend interface {
	Memory
	Dense
	Conv
	Update
	// Record runs fn once and returns a function that repeats fn's kernels on
	// the same Buffers; on a host that may be fn itself. key names the recording
	// in errors and traces. fn must not depend on Go values that change from one
	// repetition to the next, other than the contents of Buffers.
	Record(key string, fn func() error) (func() error, error)
	// Do runs fn on the thread that the backend needs and returns its error, or
	// ctx's if fn did not start. All other methods are called from inside fn if
	// the backend is bound to a thread.
	Do(ctx context.Context, fn func() error) error
	// Sync waits for all work so far, or for ctx.
	Sync(ctx context.Context) error
	// Close frees all memory. The backend is not used afterwards.
	Close() error
}

// Memory is the part of a Backend that owns Buffers. Each Buffer it returns
// begins at a multiple of 64 bytes.
type Memory interface {
	// Alloc returns n float32, zeroed; they live until Close.
	Alloc(n int) Buffer
	// AllocInts returns n int32, zeroed; they live until Close.
	AllocInts(n int) Buffer
	// Temp returns n float32 with undefined contents; they live until Recycle.
	Temp(n int) Buffer
	// Recycle ends the life of everything Temp has returned.
	Recycle()
	// Copy sets dst to src, which may be reused on return.
	Copy(dst Buffer, src []float32)
	// CopyInts sets dst to src, which may be reused on return.
	CopyInts(dst Buffer, src []int32)
	// Read waits for the work before it and sets dst to src.
	Read(dst []float32, src Buffer)
	// Zero sets every element of b, of either type, to 0.
	Zero(b Buffer)
}

// A Sharer is a Backend that has memory for gradients which other processes
// reach in place, so that they need not be copied to be summed.
type Sharer interface {
	// AllocShared is Alloc of such memory.
	AllocShared(n int) Buffer
}

// Dense is the arithmetic of layers whose input is a matrix of rows.
type Dense interface {
	// Gemm sets c = op(a)·op(b) + beta·c. c is m×n; op(a) is m×k and is a, or
	// the transpose of a, which then is k×m; op(b) is k×n and b, or the
	// transpose of b, which then is n×k. With beta 0 the contents of c do not
	// matter. c overlaps neither a nor b.
	Gemm(c, a, b Buffer, m, n, k int, transA, transB bool, beta float32)
	// AddBias adds bias to every row of y: y[i,j] += bias[j].
	AddBias(y, bias Buffer)
	// SumRows adds the rows of y to sum, in row order: sum[j] += Σᵢ y[i,j].
	SumRows(sum, y Buffer)
	// Rescale sets y = scale·x + shift.
	Rescale(y, x Buffer, scale, shift float32)
	// Relu sets y = 0 where x <= 0 and y = x elsewhere, NaN included.
	Relu(y, x Buffer)
	// ReluGrad sets dx = 0 where y <= 0 and dx = scale·dy elsewhere. With scale
	// 1/(1-rate) it is the gradient of Relu followed by Dropout in place.
	ReluGrad(dx, dy, y Buffer, scale float32)
	// Dropout sets y[i,j] = x[i,j]/(1-rate) where U >= rate and 0 elsewhere, for
	// rows of the given width. U is the upper 24 bits of word j mod 4 of
	// s.Draw(layer, i, j/4), as a fraction in [0, 1). The factor is
	// 1/(1-rate) in float32; rate is in [0, 1). It is its own gradient.
	Dropout(y, x Buffer, width int, rate float32, layer uint32, s Stream)
	// Softmax sets each row of the given width to
	// y[j] = exp(x[j]-max x) / Σₖ exp(x[k]-max x).
	Softmax(y, x Buffer, width int)
	// CrossEntropy adds Σᵢ -log(max(p[i, labels[i]], 2⁻¹²⁶)) to loss[0] and,
	// unless dlogits is empty, sets dlogits[i,j] = p[i,j] - (1 if j = labels[i]
	// else 0), the gradient by the logits if p is their Softmax. A row's label
	// is int32 in [0, columns of p).
	CrossEntropy(dlogits, loss, p, labels Buffer)
	// Correct adds to count[0] the number of rows whose first largest score
	// stands at the row's label.
	Correct(count, scores, labels Buffer)
}

// Conv is the arithmetic of layers whose input is rows of images. Rows are
// independent of each other: what is computed of one has the same bits whichever
// others are in the batch.
type Conv interface {
	// Conv2D sets y[r,o,i,j] = b[o] + Σ w[o,c,u,v]·x[r,c,i',j'] over c, u and v,
	// where (i', j') is element (u, v) of the window at (i, j) and x is 0
	// outside the image. Rows of y are (b.Len(), OutHeight, OutWidth); w is
	// (b.Len(), Channels, Size, Size). y is not x.
	Conv2D(y, x, w, b Buffer, s Window)
	// Conv2DGrad adds the gradients of w and b to dw and db. Where dy is 0, x
	// does not matter.
	Conv2DGrad(dw, db, dy, x Buffer, s Window)
	// Conv2DInputGrad sets dx to the gradient of x. dx is not dy.
	Conv2DInputGrad(dx, dy, w Buffer, s Window)
	// MaxPool sets y[r,c,i,j] to the largest element of plane c in the window at
	// (i, j), without what lies outside the image; NaN if any is NaN. y is not
	// x.
	MaxPool(y, x Buffer, s Window)
	// MaxPoolGrad sets dx to the gradient of x, where y is MaxPool of x: each dy
	// is added to the first element of its window, row after row, that equals y,
	// or is NaN if y is.
	MaxPoolGrad(dx, dy, x, y Buffer, s Window)
}

// Update is the arithmetic of optimizers, on one parameter or on blocks of it.
type Update interface {
	// Scale sets y = a·y.
	Scale(y Buffer, a float32)
	// Axpy sets y = a·x + y.
	Axpy(y Buffer, a float32, x Buffer)
	// SquaredNorm sets sums[k] = Σᵢ (g[i] + l2·w[i])² over block k of BlockSize
	// elements, summed in float64 and rounded once, and is independent of which
	// other blocks the call covers. l2 is hyper[HyperL2].
	SquaredNorm(sums, g, w, hyper Buffer)
	// Adam makes one step of Thinc's Adam. With h = hyper, g' = g + h[L2]·w; if
	// h[Clip] > 0 and the norm, the root of the float64 sum of norms in block
	// order, is at least h[Clip], g' is scaled by h[Clip]/norm. Then
	//
	//	m = h[Beta1]·m + h[Mix1]·g'
	//	v = h[Beta2]·v + h[Mix2]·g'²
	//	w = w - h[Rate]·m/(√v + h[Eps])
	//	w = w - h[Decay]·w
	//	average = average - h[Average]·(average - w), unless average is empty
	//
	// where an m or v smaller than 2⁻¹²⁶ in magnitude becomes 0.
	// norms covers the whole parameter, also when w is a part of it; it is not
	// read if h[Clip] is 0. g does not change.
	Adam(w, g, m, v, average, norms, hyper Buffer)
	// SGD is Adam with w = w - h[Rate]·g' in place of its first three lines.
	SGD(w, g, average, norms, hyper Buffer)
}
