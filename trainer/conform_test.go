package trainer_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/trainertest"
)

// allReduce is what AllReduce promises.
var allReduce = trainertest.Promises{Lockstep: true, Equal: true, Compares: true, MicroBatches: true, Resumes: true, Streams: true, Records: true, Switches: true}

func TestAllReduceConforms(t *testing.T) {
	for name, change := range map[string]func(s *trainertest.Suite){
		"plain": func(*trainertest.Suite) {},
		"sum of means": func(s *trainertest.Suite) {
			s.Change = func(c *trainer.Config) { c.Reduce = trainer.ReduceSum }
		},
		"gradients of all steps": func(s *trainertest.Suite) {
			s.Change = func(c *trainer.Config) { c.Accumulate = true }
			s.Records = false
		},
		"tcp": func(s *trainertest.Suite) {
			s.Connect, s.Sizes = overTCP, []int{2}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := trainertest.Suite{New: newAllReduce(t, "none", 0), Promises: allReduce}
			change(&s)
			trainertest.TestStrategy(t, s)
		})
	}
}

// A strategy whose ranks train independently makes no promises.
func TestSoloConforms(t *testing.T) {
	trainertest.TestStrategy(t, trainertest.Suite{New: func(b nn.Backend) trainer.Strategy { return &solo{b: b} }})
}

// Gradients leave in five buckets, with every compression.
func TestCompressedAllReduceConforms(t *testing.T) {
	for _, how := range append(lossy, "none") {
		t.Run(how, func(t *testing.T) {
			s := trainertest.Suite{New: newAllReduce(t, how, fiveBuckets), Promises: allReduce}
			if how != "none" {
				s.MicroBatches, s.Records = false, false
			}
			trainertest.TestStrategy(t, s)
		})
	}
}

// newAllReduce returns a Suite's New. bucket 0 is the default.
func newAllReduce(t *testing.T, compressed string, bucket int) func(nn.Backend) trainer.Strategy {
	c, err := trainer.ParseCompression(compressed)
	require.NoError(t, err)
	return func(b nn.Backend) trainer.Strategy {
		s := trainer.NewAllReduce(b, optim.DefaultAdam())
		s.SetCompression(c)
		if bucket > 0 {
			s.SetBucket(bucket)
		}
		return s
	}
}
