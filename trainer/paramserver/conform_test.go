package paramserver

import (
	"fmt"
	"testing"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/trainertest"
)

func TestSyncConforms(t *testing.T) {
	for servers := range 4 {
		t.Run(fmt.Sprintf("%d servers", servers), func(t *testing.T) {
			trainertest.TestStrategy(t, trainertest.Suite{
				New: func(b nn.Backend) trainer.Strategy {
					return NewSync(b, optim.DefaultAdam(), Servers{Among: servers})
				},
				Promises: trainertest.Promises{Lockstep: true, Equal: true, Compares: true, MicroBatches: true, Resumes: true, Switches: true},
			})
		})
	}
}
