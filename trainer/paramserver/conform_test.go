package paramserver

import (
	"fmt"
	"testing"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/trainertest"
)

func TestAsyncConforms(t *testing.T) {
	for name, p := range map[string]Policy{
		"unbounded": {},
		"dropped":   {Bounded: true},
		"damped":    {Bounded: true, MaxStaleness: 1, Damp: true},
	} {
		for servers := range 3 {
			t.Run(fmt.Sprintf("%s, %d servers", name, servers), func(t *testing.T) {
				suite := trainertest.Suite{
					New: func(b nn.Backend) trainer.Strategy {
						return NewAsync(b, optim.DefaultAdam(), Servers{Among: servers}, p)
					},
					Promises: trainertest.Promises{Asynchronous: true},
				}
				trainertest.TestStrategy(t, suite)
				suite.Sizes, suite.Promises = []int{1}, trainertest.Promises{Lockstep: true, Equal: true, Compares: true, Resumes: true}
				t.Run("alone", func(t *testing.T) { trainertest.TestStrategy(t, suite) })
			})
		}
	}
}

func TestPeersConform(t *testing.T) {
	for quorum := range 3 {
		t.Run(fmt.Sprintf("quorum %d", quorum), func(t *testing.T) {
			suite := trainertest.Suite{
				New:      func(b nn.Backend) trainer.Strategy { return NewPeers(b, optim.DefaultAdam(), quorum) },
				Sizes:    []int{2, 3},
				Promises: trainertest.Promises{Asynchronous: true},
			}
			trainertest.TestStrategy(t, suite)
			if quorum > 1 {
				return // one worker would take steps without an update
			}
			suite.Sizes, suite.Promises = []int{1}, trainertest.Promises{Lockstep: true, Equal: true, Compares: true, Resumes: true}
			t.Run("alone", func(t *testing.T) { trainertest.TestStrategy(t, suite) })
		})
	}
}

func TestSyncConforms(t *testing.T) {
	for servers := range 4 {
		t.Run(fmt.Sprintf("%d servers", servers), func(t *testing.T) {
			trainertest.TestStrategy(t, trainertest.Suite{
				New: func(b nn.Backend) trainer.Strategy {
					s := NewSync(b, optim.DefaultAdam(), Servers{Among: servers})
					s.SetBucket(servers % 2) // a bucket for each parameter, or one of all
					return s
				},
				Promises: trainertest.Promises{Lockstep: true, Equal: true, Compares: true, MicroBatches: true, Resumes: true, Streams: true, Switches: true},
			})
		})
	}
}
