package trainer_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/trainertest"
)

// Every length of rounds keeps the promises: rounds of a single step, rounds that a snapshot
// after step 3 interrupts, and rounds that it does not.
func TestLocalSGDConforms(t *testing.T) {
	for _, steps := range []int{1, 2, 3} {
		for name, how := range map[string]string{"exact": "none", "int8": "int8"} {
			t.Run(fmt.Sprintf("rounds of %d, %s", steps, name), func(t *testing.T) {
				trainertest.TestStrategy(t, localSuite(t, trainer.DiLoCo(steps), how))
			})
		}
	}
	t.Run("averaging", func(t *testing.T) {
		trainertest.TestStrategy(t, localSuite(t, trainer.Averaging(2), "none"))
	})
	t.Run("tcp", func(t *testing.T) {
		s := localSuite(t, trainer.DiLoCo(2), "none")
		s.Connect, s.Sizes = overTCP, []int{2}
		trainertest.TestStrategy(t, s)
	})
}

func localSuite(t *testing.T, r trainer.Rounds, compressed string) trainertest.Suite {
	c, err := trainer.ParseCompression(compressed)
	require.NoError(t, err)
	return trainertest.Suite{
		New: func(b nn.Backend) trainer.Strategy {
			s := trainer.NewLocalSGD(b, optim.DefaultAdam(), r)
			s.SetCompression(c)
			return s
		},
		Promises: trainertest.Promises{Lockstep: true, Every: r.Steps, Equal: true, Compares: true, Resumes: true},
	}
}
