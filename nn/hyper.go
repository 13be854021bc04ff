package nn

// Hyper-parameters of one update reach the kernels through a Buffer of HyperLen
// float32, and not as Go values, so that a backend which records work and
// repeats it reads the values of the current step. An Optimizer computes them
// in float64 and rounds once.
const (
	HyperRate    = iota // learn rate; for Adam times sqrt(1-beta2^t)/(1-beta1^t)
	HyperBeta1          // decay of the first moment
	HyperMix1           // 1 - beta1
	HyperBeta2          // decay of the second moment
	HyperMix2           // 1 - beta2
	HyperEps            // added to the root of the second moment
	HyperL2             // added to the gradient times the weight, before clipping
	HyperClip           // largest norm of a parameter's gradient; 0: any
	HyperDecay          // taken off the weight times the weight, after the step
	HyperAverage        // share of the weight in its moving average
	HyperLen            // number of hyper-parameters
)

// BlockSize is the number of consecutive elements of one parameter whose
// squares are summed together, and the unit in which an update can be divided.
const BlockSize = 4096

// Blocks returns how many blocks n elements take.
func Blocks(n int) int { return (n + BlockSize - 1) / BlockSize }
