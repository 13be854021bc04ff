package trainer

import (
	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/optim"
)

// hashEvery is the number of steps after which ranks compare a hash of their
// values.
const hashEvery = 50

// AllReduce is the strategy in which every rank holds all parameters and its own
// optimizer. Gradients are summed over the ranks and divided by the number of all
// rows. Every rank gets the same bits, so every rank makes the same update.
//
// Gradients leave in buckets, each as soon as the backward pass has completed it.
// Ranks also exchange a 64-byte word about the step: before the gradients if these
// leave in one piece, and after the last bucket otherwise, when weight and loss are
// known. The update follows both.
//
// Parameters may be in device memory, if the group's engine reaches it. Their
// gradients leave uncompressed, in one piece or, with SetSummer, in buckets.
type AllReduce struct {
	group     *collective.Group // of Start
	backend   nn.Backend
	optimizer optim.Optimizer

	name      string          // of the strategy and its settings
	compared  optim.Optimizer // ranks compare its hyper-parameters
	hashAll   bool            // ranks compare their values in every step
	state     *optim.State
	agreement *Agreement // Start makes it

	bucket      int // bytes; 0: ChooseBucket
	compression Compression
	sparse      Sparse
	summer      GradientSummer   // nil: gradients in device memory leave in one piece
	gradients   gradientExchange // Start makes it
}

var (
	_ Strategy = (*AllReduce)(nil)
	_ Streamer = (*AllReduce)(nil)
)

// NewAllReduce makes the strategy; Start gives it a group. The backend and the
// optimizer stay the caller's.
func NewAllReduce(b nn.Backend, o optim.Optimizer) *AllReduce {
	return &AllReduce{backend: b, optimizer: o, name: "allreduce", compared: o}
}

// SetBucket sets the minimum number of bytes in a bucket; 0, the default, is ChooseBucket's.
// It does not affect the bits of the result, except with TopK, which selects within a
// bucket, and with NCCL, whose order depends on the length of a vector. All ranks set
// the same, before Start.
func (a *AllReduce) SetBucket(bytes int) { a.bucket = bytes }

// Buckets implements Recordable.
func (a *AllReduce) Buckets(p *nn.Params) []int {
	if a.group.Size() == 1 {
		return []int{p.Grads.Len()}
	}
	return Buckets(p, a.leastBucket(p))
}

func (a *AllReduce) leastBucket(p *nn.Params) int {
	if a.bucket > 0 {
		return a.bucket
	}
	return ChooseBucket(a.group, p, a.compression)
}

// SetCompression makes gradients smaller before they leave. Each rank adds what was
// lost to its next gradients. A rank adds its micro-batches before it compresses, so
// one rank with n of them does not get the bits of n ranks. All ranks set the same,
// before Start.
func (a *AllReduce) SetCompression(c Compression) { a.compression = c }

// SetSparse sends only the touched rows of tables in host memory, as it says. Then no call
// but a backward pass may set gradients of tables. With a compression, which gives every
// element a residual, all gradients leave whole. All ranks set the same, before Start. The
// default is SparseOff.
func (a *AllReduce) SetSparse(s Sparse) { a.sparse = s }

// SetSummer lets gradients in device memory leave in buckets during the backward pass,
// as those in host memory do. The device still waits for the host between steps; a
// Recording avoids that, too. All ranks call it, before Start.
func (a *AllReduce) SetSummer(s GradientSummer) { a.summer = s }

// Close implements Strategy. It frees the optimizer's state and what compression kept back.
func (a *AllReduce) Close() error {
	a.state, a.gradients = nil, gradientExchange{}
	return nil
}
