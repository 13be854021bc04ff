package trainer

import "github.com/ringtrain/ringtrain/nn"

// A bucketSender sends the gradients of one backward pass in buckets, each as soon as it
// is complete.
type bucketSender struct {
	grads nn.Buffer
	lens  []int // of the buckets that have not left, see Buckets
	left  int   // gradients from here on have left
	leave func(bucket nn.Buffer) error
	err   error
}

func newBucketSender(grads nn.Buffer, lens []int, leave func(bucket nn.Buffer) error) *bucketSender {
	return &bucketSender{grads: grads, lens: lens, left: grads.Len(), leave: leave}
}

// final sends the buckets that are complete if gradients from lo on are. It is for
// nn.Pass.Final.
func (s *bucketSender) final(lo int) {
	for len(s.lens) > 0 && s.err == nil && s.left-s.lens[0] >= lo {
		from := s.left - s.lens[0]
		s.err = s.leave(s.grads.Slice(from, s.left))
		s.left, s.lens = from, s.lens[1:]
	}
}
