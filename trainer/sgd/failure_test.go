package sgd_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/sgd"
)

var errBad = errors.New("no room on the device")

func TestOptions(t *testing.T) {
	for want, o := range map[string]sgd.Options{
		"sgd: Options.Workers must be at least 1, not 0":  {Devices: 1},
		"sgd: Options.Devices must be at least 1, not -1": {Workers: 1, Devices: -1},
	} {
		_, err := sgd.New(t.Context(), creator(1, 1), o)
		require.EqualError(t, err, want)
		_, err = sgd.Join(t.Context(), collectivetest.Local(t, 1)[0], creator(1, 1), o)
		require.EqualError(t, err, want)
	}
	_, err := sgd.Join(t.Context(), collectivetest.Local(t, 3)[0], creator(2, 2), sgd.Options{Workers: 2, Devices: 2})
	require.EqualError(t, err, "sgd: 2 workers of 2 devices need a group of 4 ranks, not 3")
}

// A creator that fails is named, and ends those that are not done.
func TestCreatorFails(t *testing.T) {
	_, err := sgd.New(t.Context(), func(ctx context.Context, worker, device int) (*sgd.Replica, error) {
		switch {
		case worker == 1 && device == 0:
			return nil, errBad
		case worker == 0 && device == 0:
			return makeReplica(0, 4)
		}
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}, sgd.Options{Workers: 2, Devices: 2})
	require.EqualError(t, err, "sgd: creating the model: worker 1, device 0: no room on the device")
	require.ErrorIs(t, err, errBad)
	_, err = sgd.New(t.Context(), nil, sgd.Options{Workers: 1, Devices: 1})
	require.EqualError(t, err, "sgd: creating the model: worker 0, device 0: there is no creator: it is nil")

	unfinished := cpu.New(cpu.Options{})
	for want, made := range map[string]*sgd.Replica{
		"sgd: creating the model: worker 0, device 0: the creator must set Backend, Task and Optimizer": {Backend: unfinished},
		"sgd: creating the model: worker 0, device 0: the task must have 1 micro-batch, not 0; use more devices": func() *sgd.Replica {
			r, err := makeReplica(0, 1)
			require.NoError(t, err)
			r.Task.(*trainer.ModelTask[nn.Batch]).Train = nil
			return r
		}(),
	} {
		_, err := sgd.New(t.Context(), func(context.Context, int, int) (*sgd.Replica, error) { return made, nil }, sgd.Options{Workers: 1, Devices: 1})
		require.EqualError(t, err, want)
	}
	require.ErrorIs(t, unfinished.Sync(t.Context()), cpu.ErrClosed, "New closes what a creator has made")
}

// Creators end with the context of New.
func TestCreatorsEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	begun := make(chan struct{})
	go func() {
		<-begun
		<-begun
		cancel()
	}()
	_, err := sgd.New(ctx, func(ctx context.Context, _, _ int) (*sgd.Replica, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}, sgd.Options{Workers: 2, Devices: 1})
	require.ErrorIs(t, err, context.Canceled)
}

// failing is a task without rows for one step.
type failing struct {
	trainer.Task
	at int
}

func (f failing) Load(step, micro int) (int, error) {
	if step == f.at {
		return 0, errBad
	}
	return f.Task.Load(step, micro)
}

// failsAt is a creator whose worker 1, device 1 fails in a step.
func failsAt(step int) sgd.Creator {
	return func(ctx context.Context, worker, device int) (*sgd.Replica, error) {
		r, err := creator(2, 2)(ctx, worker, device)
		if err == nil && worker == 1 && device == 1 {
			r.Task = failing{r.Task, step}
		}
		return r, err
	}
}

// A replica that fails is named, now and in later calls.
func TestReplicaFails(t *testing.T) {
	s, err := sgd.New(t.Context(), failsAt(2), sgd.Options{Workers: 2, Devices: 2})
	require.NoError(t, err)
	steps(t, s, 2)
	const want = "sgd: step 3: worker 1, device 1: no room on the device"
	_, err = s.Step(t.Context())
	require.EqualError(t, err, want)
	var culprit *sgd.ReplicaError
	require.ErrorAs(t, err, &culprit)
	require.Equal(t, []int{1, 1}, []int{culprit.Worker, culprit.Device})
	_, err = s.Step(t.Context())
	require.EqualError(t, err, want)
	_, err = s.Weights(t.Context())
	require.EqualError(t, err, want)
	require.EqualError(t, s.SetWeights(t.Context(), nil), want)
	require.EqualError(t, s.Restore(t.Context(), "a"), want)
	_, err = sgd.ForEachModel(t.Context(), s, func(*sgd.Replica) (int, error) { return 0, nil })
	require.EqualError(t, err, want)
	require.Equal(t, 2, s.Steps())
	require.NoError(t, s.Close())
	_, err = s.Step(t.Context())
	require.ErrorIs(t, err, sgd.ErrClosed)
	require.NoError(t, s.Close())
}

// Every process names the replica that failed.
func TestProcessFails(t *testing.T) {
	for name, create := range map[string]sgd.Creator{
		"creator": func(ctx context.Context, worker, device int) (*sgd.Replica, error) {
			if worker == 1 && device == 1 {
				return nil, errBad
			}
			return creator(2, 2)(ctx, worker, device)
		},
		"step": failsAt(0),
	} {
		t.Run(name, func(t *testing.T) {
			collectivetest.Run(t, collectivetest.Local(t, 4), func(ctx context.Context, g *collective.Group) {
				s, err := sgd.Join(ctx, g, create, sgd.Options{Workers: 2, Devices: 2})
				if err == nil {
					_, err = s.Step(ctx)
					assert.NoError(t, s.Close())
				}
				var culprit *sgd.ReplicaError
				if assert.ErrorAs(t, err, &culprit) {
					assert.Equal(t, []int{1, 1}, []int{culprit.Worker, culprit.Device}, "%v", err)
				}
				assert.ErrorIs(t, err, errBad)
			})
		})
	}
}

// Processes that were started differently say so.
func TestProcessesDiffer(t *testing.T) {
	collectivetest.Run(t, collectivetest.Local(t, 4), func(ctx context.Context, g *collective.Group) {
		o := sgd.Options{Workers: 2, Devices: 2}
		if g.Rank() == 3 {
			o = sgd.Options{Workers: 4, Devices: 1}
		}
		_, err := sgd.Join(ctx, g, creator(o.Workers, o.Devices), o)
		var differ *trainer.SettingsError
		assert.ErrorAs(t, err, &differ)
		assert.ErrorContains(t, err, "the number of devices of a worker")
	})
}

// late is a task whose rows come when its context ends.
type late struct {
	trainer.Task
	ctx context.Context
}

func (l late) Load(step, micro int) (int, error) {
	<-l.ctx.Done()
	return l.Task.Load(step, micro)
}

// ending is a task that ends a context when it has computed gradients.
type ending struct {
	trainer.Task
	end func()
}

func (e ending) Learn(p *nn.Pass) (nn.Buffer, int, error) {
	defer e.end()
	return e.Task.Learn(p)
}

// A step ends with its context, although one replica waits for another.
func TestStepEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s, err := sgd.New(t.Context(), func(_ context.Context, worker, _ int) (*sgd.Replica, error) {
		r, err := makeReplica(worker, 2)
		switch {
		case err == nil && worker == 0:
			r.Task = ending{r.Task, cancel}
		case err == nil:
			r.Task = late{r.Task, ctx}
		}
		return r, err
	}, sgd.Options{Workers: 2, Devices: 1})
	require.NoError(t, err)
	defer s.Close()
	_, err = s.Step(ctx)
	require.ErrorIs(t, err, context.Canceled)
	_, err = s.Step(t.Context())
	require.ErrorIs(t, err, context.Canceled, "it is broken")
}
