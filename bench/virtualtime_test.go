package bench

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/models"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
)

// A modelTask is a trainer.Task that has only a model.
type modelTask struct {
	trainer.Task
	model *nn.Classifier
}

func (t modelTask) Params() *nn.Params { return t.model.Params() }

// Emulated compute takes exactly its time: a third until the backward pass, then each
// parameter its share of the rest. Time that Final takes is not added.
func TestEmulatedTakesExactlyItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := cpu.New(cpu.Options{})
		defer b.Close()
		model, err := nn.NewClassifier(b, models.ReluReluSoftmax(8, 0), []int{6}, 3, 1)
		require.NoError(t, err)
		const took = 900 * time.Millisecond
		m := Emulate(t.Context(), modelTask{model: model}, b, took)
		params := m.Params()
		total := params.Values.Len()
		begin := time.Now()
		var final []int
		_, _, err = m.Learn(&nn.Pass{Backend: b, Final: func(lo int) {
			final = append(final, lo)
			share := float64(total-lo) / float64(total)
			require.InDelta(t, (took/3 + time.Duration(share*float64(2*took/3))).Seconds(), time.Since(begin).Seconds(), 1e-6, "from %d on", lo)
			late := time.NewTimer(time.Millisecond) // shorter than what any parameter takes
			<-late.C
		}})
		require.NoError(t, err)
		require.Len(t, final, len(params.List))
		require.Equal(t, took+time.Millisecond, time.Since(begin), "only the last delay counts")
	})
}

// The launcher has countTime to read its counters before rank 0 continues. A trial that ends
// in that time says why.
func TestTrialBeginsAfterCountTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		views, transports := collective.Local(1)
		g := collective.NewGroup(views[0], collective.OverTransport(views[0], transports[0]), collective.Options{})
		defer g.Close()
		var log eventLog
		r := &trialRank{ScalingRun: new(ScalingRun), all: g, group: g, events: &log}
		begin := time.Now()
		require.NoError(t, r.begin(t.Context()))
		require.Equal(t, countTime, time.Since(begin))
		require.Equal(t, []string{"measuring"}, log.kinds())
		require.Zero(t, r.times.sent(), "nothing is sent yet")

		why := errors.New("the machine is needed")
		ctx, cancel := context.WithCancelCause(t.Context())
		stop := time.AfterFunc(countTime/2, func() { cancel(why) })
		defer stop.Stop()
		begin = time.Now()
		require.Equal(t, why, r.begin(ctx))
		require.Equal(t, countTime/2, time.Since(begin))
	})
}

// Evaluations take the time since the step or evaluation before them.
func TestEvaluationTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &stepTimes{sent: func() int64 { return 0 }, last: time.Now()}
		wait := func(d time.Duration) { <-time.NewTimer(d).C }
		wait(time.Second)
		r.Stepped(trainer.StepEvent{})
		wait(300 * time.Millisecond)
		r.Evaluated(trainer.EvalEvent{})
		require.InDelta(t, .3, r.evaluation, 1e-9, "not the step")
		wait(200 * time.Millisecond)
		r.Evaluated(trainer.EvalEvent{})
		require.InDelta(t, .5, r.evaluation, 1e-9)
	})
}

// A notice is shown although another line is stuck on its way to the terminal, because the
// user who presses Ctrl-C must see that it was noticed.
func TestNoticeDoesNotWait(t *testing.T) {
	var out bytes.Buffer
	d := &trialDisplay{Lines: crew.Lines{To: &out}}
	d.mu.Lock() // as Log holds it while a write is stuck
	defer d.mu.Unlock()
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		d.Notice("stopping")
	}()
	select {
	case <-shown:
		require.Equal(t, "stopping\n", out.String())
	case <-time.After(10 * time.Second):
		require.Fail(t, "the notice waits")
	}
}
