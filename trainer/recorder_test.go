package trainer

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
)

// stuck is a pace whose device makes no progress.
type stuck struct{ nn.Pace }

func (stuck) Losses(ctx context.Context, _ int, _ []float32) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// A device that does not finish its first launch ends the training after longStepTimeout,
// however many steps the launch has.
func TestStuckLaunch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		views, _ := collective.Local(1)
		r := &recorder{loop: &loop{place: Place{View: views[0]}}, pace: stuck{}, pending: []launch{{plan{steps: 3}, 5}}}
		begin := time.Now()
		_, err := r.collect(t.Context(), 0)
		require.ErrorContains(t, err, "steps 6 to 8 on rank 0: the device has not finished them in 10m0s")
		require.Equal(t, longStepTimeout, time.Since(begin))
	})
}
