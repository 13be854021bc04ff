package trainer

import (
	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/optim"
)

// hashEvery is the number of steps after which ranks compare a hash of their
// values.
const hashEvery = 50

// AllReduce is the strategy in which every rank holds all parameters and its
// own optimizer: gradients are summed over the ranks and divided by all rows,
// and since every rank gets the same bits, every rank makes the same update.
//
// Gradients leave in buckets, each as soon as the backward pass has completed
// it. The step's word, a 64-byte all-gather, goes before the gradients when they
// leave all at once, and after the last bucket when they leave in several, since
// weight and loss are known only then. Either way the update comes after both.
//
// Parameters may be in device memory, if the group's engine reaches it. Then
// gradients leave as they are, from the thread of the backend: in buckets with
// SetSums, and otherwise all at once.
type AllReduce struct {
	group     *collective.Group // of Start
	backend   nn.Backend
	optimizer optim.Optimizer

	state    *optim.State
	mine     []int64 // this rank's word
	words    []int64 // all ranks'
	patience patience

	bucket      int // bytes
	compression Compression
	sums        Sums     // nil: gradients in device memory leave all at once
	exchange    exchange // of gradients; Start makes it
}

var (
	_ Strategy = (*AllReduce)(nil)
	_ Streamer = (*AllReduce)(nil)
)

// NewAllReduce makes the strategy; Start gives it a group. The backend and the
// optimizer stay the caller's.
func NewAllReduce(b nn.Backend, o optim.Optimizer) *AllReduce {
	return &AllReduce{backend: b, optimizer: o, bucket: DefaultBucket}
}

// SetBucket sets the least number of bytes of gradients that leave together;
// DefaultBucket otherwise. The result has the same bits whatever it is, but for
// TopK, which chooses within a bucket, and for sums by NCCL, whose order depends on
// the length of a vector. All ranks set the same, before Start.
func (a *AllReduce) SetBucket(bytes int) { a.bucket = bytes }

// Buckets implements Recordable.
func (a *AllReduce) Buckets(p *nn.Params) []int {
	if a.group.Size() == 1 {
		return []int{p.Grads.Len()}
	}
	return Buckets(p, a.bucket)
}

// SetCompression makes gradients smaller before they leave. Each rank keeps
// what is lost for its next step; a rank's micro-batches are added first, so one
// rank with n of them does not make the bits of n ranks. All ranks set the
// same, before Start.
func (a *AllReduce) SetCompression(c Compression) { a.compression = c }

// SetSums has gradients in device memory leave in buckets while the backward pass
// makes others, as those in host memory do. The device computes nothing of the next
// step before the host has heard of this one; see Recording for that. All ranks do
// it, before Start.
func (a *AllReduce) SetSums(s Sums) { a.sums = s }

// Close implements Strategy.
func (a *AllReduce) Close() error { return nil }
