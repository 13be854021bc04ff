package nn

// Norms is the arithmetic of layers that normalise. Every operation is rounded to
// float32, in the order written. Σ over the elements of one row, or of one plane of one
// row, adds element i to partial sum i mod 16 and then adds the 16 sums pairwise, halving
// their number each time: s[i] += s[i+8], and so on. Rows are independent in LayerNorm:
// the result for one row has the same bits whatever the other rows are.
type Norms interface {
	// LayerNorm normalises each row, of width g.Len(). It sets
	//
	//	mean = (Σ x)/width
	//	r = 1/√((Σ (x-mean)²)/width + eps)
	//	y = ((x-mean)·r)·g + b
	//
	// and stores mean and r of row i in moments[2i] and moments[2i+1].
	LayerNorm(y, moments, x, g, b Buffer, eps float32)
	// LayerNormGrad adds the gradients of g and b to dg and db, in row order, and sets dx
	// to the gradient of x. With z = (x-mean)·r and h = dy·g,
	//
	//	dx = r·((h - (Σ h)/width) - z·((Σ h·z)/width))
	//	dg = dg + dy·z
	//	db = db + dy
	LayerNormGrad(dx, dg, db, dy, x, moments, g Buffer)
	// ChannelMoments sets m.Mean and m.Variance to those of x. With n elements per
	// channel,
	//
	//	mean = (Σ x)/n
	//	variance = (Σ (x-mean)²)/n
	//
	// where Σ takes the sum of each plane as above, and adds these in row order.
	ChannelMoments(m Moments, x Buffer)
	// BatchNorm sets y = ((x-mean)·r)·g + b with r = 1/√(variance + m.Eps), all of them of
	// x's channel.
	BatchNorm(y, x, g, b Buffer, m Moments)
	// BatchNormGrad adds the gradients of g and b to dg and db and sets dx to the gradient
	// of x. With z = (x-mean)·r and n and Σ as in ChannelMoments,
	//
	//	dx = (g·r)·((dy - (Σ dy)/n) - z·((Σ dy·z)/n)), or (g·r)·dy if m.Fixed is set
	//	dg = dg + Σ dy·z
	//	db = db + Σ dy
	BatchNormGrad(dx, dg, db, dy, x, g Buffer, m Moments)
}

// Moments are the moments of the channels of rows of images. Mean and Variance have one
// element per channel.
type Moments struct {
	Mean, Variance Buffer
	Plane          int     // elements of one channel in one row
	Eps            float32 // added to the variance
	Fixed          bool    // the moments are constants: they do not depend on x
}
