// Package trainertest tests implementations of trainer's contracts. [TestStrategy] is
// the conformance suite of trainer.Strategy.
package trainertest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer"
)

// A Suite describes the strategy to test, and what it promises beyond trainer.Strategy.
type Suite struct {
	// New makes the strategy of one rank.
	New func(b nn.Backend) trainer.Strategy
	// Connect connects the ranks; nil: collective.Local.
	Connect collectivetest.Connector
	// Sizes are the numbers of ranks to test; nil: 1, 2 and 3.
	Sizes []int
	// Change changes the Config of every run; may be nil.
	Change func(c *trainer.Config)

	Promises
}

// Promises are properties that not every strategy has.
type Promises struct {
	// Lockstep: all ranks make the same steps. Reports and totals cover all ranks and
	// are the same on each, training stops after the same step everywhere, and the
	// failure of a rank ends all others with an error that names it.
	Lockstep bool
	// Every: Lockstep and Equal hold only after every Every-th step, as the Every of a
	// trainer.Periodic says. In between, ranks train independently. 0 is 1.
	Every int
	// Asynchronous: the strategy is a trainer.Asynchronous, so steps of other ranks may have
	// effects at any time. It does not promise Lockstep.
	Asynchronous bool
	// Equal: after Start and after every step, all ranks hold the same values. Start
	// takes those of rank 0.
	Equal bool
	// Compares: Start compares settings and Finish compares values. If they differ,
	// every rank gets an error that names the ranks that differ from rank 0.
	Compares bool
	// MicroBatches: n ranks get the bits of one rank with n micro-batches.
	MicroBatches bool
	// Resumes: a new strategy that starts from a State makes the bits of the one that
	// returned it.
	Resumes bool
	// Streams: the strategy is a trainer.Streamer.
	Streams bool
	// Switches: all ranks report the Step.Switch of a rank.
	Switches bool
	// Records: the strategy is a trainer.Recordable and can record.
	Records bool
}

// every is Every, at least 1.
func (p Promises) every() int { return max(p.Every, 1) }

// agree reports whether ranks agree after a step.
func (p Promises) agree(index int) bool { return (index+1)%p.every() == 0 }

// A check tests one part of the contract with this many ranks.
type check struct {
	name string
	run  func(h *harness, size int) error
}

var checks = []check{
	{"Start", checkStart},
	{"Settings", checkSettings},
	{"Step", checkStep},
	{"Stream", checkStream},
	{"Abandon", checkAbandon},
	{"Total", checkTotal},
	{"Stop", checkStop},
	{"Switch", checkSwitch},
	{"Finish", checkFinish},
	{"FinishCompares", checkFinishCompares},
	{"State", checkState},
	{"Resume", checkResume},
	{"NextView", checkNextView},
	{"Failure", checkFailure},
	{"Cancel", checkCancel},
	{"Close", checkClose},
	{"Restart", checkRestart},
	{"Train", checkTrain},
	{"MicroBatches", checkMicroBatches},
	{"Record", checkRecord},
}

// TestStrategy checks the contract of trainer.Strategy and the promises of s, with
// parameters in host memory. What s does not promise is not checked.
func TestStrategy(t *testing.T, s Suite) {
	sizes := s.Sizes
	if sizes == nil {
		sizes = []int{1, 2, 3}
	}
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			for _, size := range sizes {
				t.Run(fmt.Sprintf("size %d", size), func(t *testing.T) {
					require.NoError(t, c.run(newHarness(t, s), size))
				})
			}
		})
	}
}

// A harness runs the ranks of one check.
type harness struct {
	Suite
	t        testing.TB
	patience time.Duration // a call that takes longer hangs
}

func newHarness(t testing.TB, s Suite) *harness {
	if s.Connect == nil {
		s.Connect = func(_ testing.TB, n int) ([]collective.View, []collective.Transport) { return collective.Local(n) }
	}
	return &harness{Suite: s, t: t, patience: 30 * time.Second}
}
