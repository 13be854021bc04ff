package trainer_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
)

// ill is a backend that fails after some calls that wait. Then Read returns garbage and
// Sync returns the reason, as with a device.
type ill struct {
	nn.Backend
	after, calls int
}

var errIll = errors.New("out of memory")

func (b *ill) broken() bool {
	b.calls++
	return b.calls > b.after
}

func (b *ill) Read(dst []float32, v nn.Buffer) {
	b.Backend.Read(dst, v)
	if b.broken() {
		dst[0] = float32(math.NaN())
	}
}

func (b *ill) Sync(ctx context.Context) error {
	if b.broken() {
		return errIll
	}
	return b.Backend.Sync(ctx)
}

// Whenever a device fails, its rank returns the device's error. It does not blame
// numbers that are not finite or ranks that differ, which are only consequences.
func TestBrokenBackend(t *testing.T) {
	train := func(after int) (*ill, error) {
		var sick *ill
		out := job{ranks: 2, batch: 8, steps: 3, optimizer: optim.DefaultSGD(.1), change: func(rank int, c *trainer.Config) {
			if rank == 1 {
				sick = &ill{Backend: c.Backend, after: after}
				c.Backend, c.Strategy = sick, trainer.NewAllReduce(sick, optim.DefaultSGD(.1))
			}
		}}.run(t)
		return sick, out[1].err
	}
	sound, err := train(math.MaxInt)
	require.NoError(t, err)
	require.Greater(t, sound.calls, 5)
	for after := range sound.calls {
		_, err := train(after)
		require.ErrorIs(t, err, errIll, "after %d of %d calls", after, sound.calls)
	}
}
