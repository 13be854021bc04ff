//go:build gpu && cgo && linux

package trainer_test

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/ncclgroup"
	"github.com/ringtrain/ringtrain/cuda/emulator"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/gpu"
	"github.com/ringtrain/ringtrain/nn/models"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// emulate makes this process use four emulated devices, once.
var emulate = sync.OnceValue(func() error {
	env, err := emulator.BuildShared(context.Background())
	if err != nil {
		return err
	}
	for _, setting := range append(env, "RINGTRAIN_EMULATOR_DEVICES=4") {
		name, value, _ := strings.Cut(setting, "=")
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return nil
})

// aside sums with NCCL, concurrently with the backend's work.
type aside struct {
	ctx context.Context
	b   *gpu.Backend
	e   *ncclgroup.Engine
}

func (s aside) Sum(grads nn.Buffer) error {
	v := trainer.Operand(grads)
	call := collective.Call{Kind: collective.KindAllReduce, DType: collective.Float32, Op: collective.Sum, Count: uint64(v.Len())}
	s.b.Aside("the sum of gradients", s.e.Queued(s.ctx, call, v, v))
	return nil
}

func (s aside) Join() error {
	s.b.Join()
	return nil
}

func (s aside) Wait(ctx context.Context) error {
	err := s.b.Sync(ctx)
	if broken := s.e.Err(); broken != nil {
		err = broken
	}
	return err
}

// onDevices runs a job on a device for each rank, with sums by NCCL. Its steps
// are recorded unless recording is nil.
func (j job) onDevices(t *testing.T, recording *trainer.Recording) []*outcome {
	return j.onDevicesBy(t, ncclgroup.Must, recording)
}

// onDevicesBy is onDevices with sums by NCCL or by the host, as use says.
func (j job) onDevicesBy(t *testing.T, use ncclgroup.Use, recording *trainer.Recording) []*outcome {
	t.Helper()
	err := emulate()
	if errors.Is(err, emulator.ErrNoCompiler) {
		t.Skip(err)
	}
	require.NoError(t, err)
	views, transports := collective.Local(j.ranks)
	out := make([]*outcome, j.ranks)
	var all sync.WaitGroup
	for r := range out {
		out[r] = new(outcome)
		all.Go(func() { out[r].err = j.onDevice(t, use, recording, views[r], transports[r], out[r]) })
	}
	all.Wait()
	return out
}

func (j job) onDevice(t *testing.T, use ncclgroup.Use, recording *trainer.Recording, v collective.View, tr collective.Transport, o *outcome) (err error) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	b, err := gpu.New(gpu.Options{Device: v.Self, Plain: j.plain, Cache: filepath.Join(os.TempDir(), "ringtrain-emulator")})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	breaking := b.Abort
	if h := j.hooks.breaking; h != nil {
		breaking = func() { h(v.Self, b.Abort) }
	}
	e, err := ncclgroup.New(ctx, v, collective.OverTransport(v, tr), ncclgroup.Config{
		Device: b.Device(), Stream: b.Stream(), NCCL: use, Breaking: breaking,
	})
	if err != nil {
		return err
	}
	g := collective.NewGroup(v, e, collective.Options{Order: collective.AnyOrder})
	defer func() { err = errors.Join(err, b.Do(ctx, b.Forget), g.Close()) }()

	var c trainer.Config
	var summer trainer.GradientSummer = aside{ctx, b, e}
	if j.hooks.summer != nil {
		summer = j.hooks.summer(v.Self, summer)
	}
	set := digits()
	err = b.Do(ctx, func() error {
		m, err := nn.NewClassifier(b, models.ReluReluSoftmax(16, j.dropout), []int{set.Train.Features()}, 10, uint64(v.Self))
		if err != nil {
			return err
		}
		sampler, err := data.NewSampler(set.Train.Rows, j.batch, v.Self, v.Size(), 1)
		if err != nil {
			return err
		}
		task := trainer.NewTask(m, nil, data.NewPart(set.Test.Stage(64, b), set.Test.Rows, v.Self, v.Size(), 64), trainer.Accuracy)
		strategy := trainer.NewAllReduce(b, j.optimizer)
		if j.bucket > 0 {
			strategy.SetBucket(j.bucket)
			strategy.SetSummer(summer)
		}
		c = trainer.Config{
			Groups: trainer.Only(g), Backend: b, Strategy: strategy, Task: trainer.NewResident(task, set.Train.Resident(j.batch, sampler, b)), Steps: j.steps, Eval: trainer.Evaluations{Every: 10}, Seed: 3, Observer: o,
		}
		return nil
	})
	if err != nil {
		return err
	}
	if recording != nil {
		r := *recording
		r.Summer = summer
		if use == ncclgroup.Off {
			r.Summer = byHost{g}
		}
		c.Recording = &r
	}
	if j.change != nil {
		j.change(v.Self, &c)
	}
	if o.result, err = trainer.Train(ctx, c); err != nil {
		if j.hooks.ended != nil {
			j.hooks.ended(v.Self, func() error { return b.Sync(ctx) })
		}
		g.Abort(err)
		_ = b.Sync(ctx) // its failure is known, and then values can be read
	}
	return errors.Join(err, b.Do(ctx, func() error {
		o.values = read(b, c.Task.Params().Values)
		return b.Sync(ctx)
	}))
}

func read(b nn.Backend, v nn.Buffer) []float32 {
	values := make([]float32, v.Len())
	b.Read(values, v)
	return values
}

// Steps recorded on a device, with NCCL inside the recording or between two recordings,
// give the same bits as steps that are not recorded, and values close to a CPU's.
func TestRecordedOnDevice(t *testing.T) {
	for _, ranks := range []int{1, 2} {
		// an epoch has 19 steps for two ranks, and the last step is smaller
		j := job{ranks: ranks, batch: 16, steps: 22, dropout: .2, optimizer: optim.DefaultRAdam()}
		want := j.onDevices(t, nil)
		for _, recording := range []trainer.Recording{{}, {Steps: 4}, {Steps: 8}, {Steps: 4, Apart: true}} {
			for r, o := range j.onDevices(t, &recording) {
				require.NoError(t, o.err)
				require.Equal(t, want[0].values, o.values, "%v", &recording)
				for i, e := range want[r].steps {
					require.Equal(t, e.Loss, o.steps[i].Loss, "step %d", i)
				}
				require.Equal(t, want[r].result.Final.Counts, o.result.Final.Counts)
			}
		}
		host := j.run(t)
		length, difference := 0.0, 0.0
		for i, x := range host[0].values {
			length += float64(x) * float64(x)
			difference += math.Pow(float64(x)-float64(want[0].values[i]), 2)
		}
		assert.LessOrEqual(t, math.Sqrt(difference), 1e-4*math.Sqrt(length), "%d ranks", ranks)
		for i, e := range host[0].steps {
			assert.InEpsilon(t, e.Loss, want[0].steps[i].Loss, 1e-5, "step %d", i)
		}
	}
}

// A sum that waits for the host comes between two recordings.
func TestRecordedSumByTheHost(t *testing.T) {
	j := job{ranks: 2, batch: 16, steps: 8, dropout: .2, optimizer: optim.DefaultAdam()}
	want := j.onDevicesBy(t, ncclgroup.Off, nil)
	for _, o := range j.onDevicesBy(t, ncclgroup.Off, &trainer.Recording{Steps: 4, Apart: true}) {
		require.NoError(t, o.err)
		require.Equal(t, want[0].values, o.values)
	}
}

// If a rank is lost during recorded steps, the error on the others names it. Their
// values are those after a complete step, without part of an interrupted sum.
func TestRecordedRankIsLost(t *testing.T) {
	j := job{ranks: 2, batch: 16, steps: 40, optimizer: optim.DefaultAdam()}
	var after [][]float32 // values of rank 0 after each step
	watched := j
	watched.change = func(rank int, c *trainer.Config) {
		if rank == 0 {
			c.Observer = observeSteps(func(trainer.StepEvent) { after = append(after, read(c.Backend, c.Task.Params().Values)) })
		}
	}
	for _, o := range watched.onDevices(t, nil) {
		require.NoError(t, o.err)
	}
	gone := errors.New("unplugged")
	for _, recording := range []*trainer.Recording{{Steps: 2}, {Apart: true}, nil} {
		lost := j
		lost.bucket = everyParameter
		lost.change = func(rank int, c *trainer.Config) {
			if rank == 1 {
				c.Observer = observeSteps(func(e trainer.StepEvent) {
					if e.Step == 13 {
						groupOf(c).Abort(gone)
					}
				})
			}
		}
		out := lost.onDevices(t, recording)
		require.ErrorIs(t, out[1].err, gone)
		var named *collective.RankError
		require.ErrorAs(t, out[0].err, &named)
		require.Equal(t, 1, named.Rank)
		whole := slices.IndexFunc(after, func(v []float32) bool { return slices.Equal(v, out[0].values) })
		require.GreaterOrEqual(t, whole, 11, "%v: the values must be those after a step", recording)
		require.Less(t, whole, 18)
	}
}
