package nn

// The hyper-parameters of an update reach the kernels through a Buffer of HyperLen
// float32 instead of as Go values. A recording that is repeated therefore reads the
// values of the current step. An Optimizer computes them in float64 and rounds once.
const (
	HyperRate    = iota // learn rate; for Adam times sqrt(1-beta2^t)/(1-beta1^t)
	HyperBeta1          // decay of the first moment
	HyperMix1           // 1 - beta1; Adam subtracts the rounded beta, as Thinc does
	HyperBeta2          // decay of the second moment
	HyperMix2           // 1 - beta2, likewise
	HyperEps            // added to the root of the second moment
	HyperL2             // times the weight, is added to the gradient before clipping
	HyperClip           // largest norm of a parameter's gradient; 0 means no limit
	HyperDecay          // times the weight, is subtracted from it after the step
	HyperAverage        // fraction by which the moving average approaches the weight
	HyperLen            // number of hyper-parameters
)

// BlockSize is the number of consecutive elements of a parameter whose squares are summed
// together. An update can be split at block boundaries.
const BlockSize = 4096

// Blocks returns the number of blocks in n elements.
func Blocks(n int) int { return (n + BlockSize - 1) / BlockSize }
