package sgd_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/models"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/checkpoint"
	"github.com/ringtrain/ringtrain/trainer/data"
	"github.com/ringtrain/ringtrain/trainer/sgd"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const seed, batch = 3, 8

var digits = func() *data.Set {
	train, test := data.Generate(data.DigitsOptions{Train: 192, Test: 60, Side: 8})
	return &data.Set{Train: train, Test: test}
}()

// makeReplica makes the replica of a rank of size: a network with dropout that draws its
// rows from all digits.
func makeReplica(rank, size int) (*sgd.Replica, error) {
	b := cpu.New(cpu.Options{})
	m, err := nn.NewClassifier(b, models.ReluReluSoftmax(12, .1), []int{digits.Train.Features()}, 10, seed)
	if err != nil {
		return nil, err
	}
	rows, err := data.NewSampler(digits.Train.Rows, batch, rank, size, seed)
	if err != nil {
		return nil, err
	}
	train := data.NewFeed(digits.Train.Stage(batch, b), rows)
	test := data.NewPart(digits.Test.Stage(batch, b), digits.Test.Rows, rank, size, batch)
	return &sgd.Replica{Backend: b, Task: trainer.NewTask(m, train, test, trainer.Accuracy), Optimizer: optim.DefaultAdam()}, nil
}

// creator is makeReplica for a number of workers and devices.
func creator(workers, devices int) sgd.Creator {
	return func(_ context.Context, worker, device int) (*sgd.Replica, error) {
		return makeReplica(worker*devices+device, workers*devices)
	}
}

// open makes an SGD that is closed at the end of the test.
func open(t *testing.T, o sgd.Options) *sgd.SGD {
	t.Helper()
	o.Seed = seed
	s, err := sgd.New(t.Context(), creator(o.Workers, o.Devices), o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}

// steps takes steps and returns their losses.
func steps(t *testing.T, s *sgd.SGD, n int) (losses []float64) {
	t.Helper()
	for range n {
		r, err := s.Step(t.Context())
		require.NoError(t, err)
		losses = append(losses, r.Loss)
	}
	return losses
}

// hash returns the hash of the weights.
func hash(t *testing.T, s *sgd.SGD) string {
	t.Helper()
	weights, err := s.Weights(t.Context())
	require.NoError(t, err)
	sum, err := checkpoint.Hash(weights)
	require.NoError(t, err)
	return sum
}

const some = 55 // steps, past the comparison of values after 50

// trained returns the weights that package trainer's loop trains with as many ranks.
func trained(t *testing.T, ranks int) (sum string, final trainer.EvalEvent) {
	t.Helper()
	collectivetest.Run(t, collectivetest.Local(t, ranks), func(ctx context.Context, g *collective.Group) {
		r, err := makeReplica(g.Rank(), ranks)
		if !assert.NoError(t, err) {
			return
		}
		defer r.Backend.Close()
		result, err := trainer.Train(ctx, trainer.Config{
			Groups: trainer.Only(g), Backend: r.Backend, Strategy: trainer.NewAllReduce(r.Backend, r.Optimizer), Task: r.Task, Steps: some, Seed: seed})
		assert.NoError(t, err)
		if g.Rank() > 0 {
			return
		}
		final = result.Final
		var weights []checkpoint.Named
		for _, q := range r.Task.Params().List {
			w, err := r.Task.Params().Weight(q.Name)
			assert.NoError(t, err)
			weights = append(weights, checkpoint.Named{Name: q.Name, Tensor: w})
		}
		sum, err = checkpoint.Hash(weights)
		assert.NoError(t, err)
	})
	return sum, final
}

// However the replicas are divided into workers, the bits are those of package trainer.
func TestSameBits(t *testing.T) {
	want, final := trained(t, 4)
	for _, o := range []sgd.Options{{Workers: 4, Devices: 1}, {Workers: 2, Devices: 2}, {Workers: 1, Devices: 4}} {
		s := open(t, o)
		took, err := s.Warmup(t.Context())
		require.NoError(t, err)
		require.Positive(t, took)
		steps(t, s, some)
		require.Equal(t, some, s.Steps())
		require.Equal(t, want, hash(t, s), "%v", o)
		e, err := s.Evaluate(t.Context())
		require.NoError(t, err)
		require.Equal(t, final.Counts, e.Counts)
		require.Equal(t, final.Metrics, e.Metrics)
		require.Equal(t, final.Loss, e.Loss)
	}
}

// Processes that each have one replica train the same weights.
func TestJoin(t *testing.T) {
	want, _ := trained(t, 4)
	logs := make([]strings.Builder, 4)
	file, err := os.Create(filepath.Join(t.TempDir(), "trace"))
	require.NoError(t, err)
	defer file.Close()
	collectivetest.Run(t, collectivetest.Local(t, 4), func(ctx context.Context, g *collective.Group) {
		s, err := sgd.Join(ctx, g, creator(2, 2), sgd.Options{Workers: 2, Devices: 2, Seed: seed, Verbose: &logs[g.Rank()], Trace: file})
		if !assert.NoError(t, err) {
			return
		}
		defer s.Close()
		for range some {
			r, err := s.Step(ctx)
			assert.NoError(t, err)
			assert.Equal(t, 4*batch, r.Rows, "all rows")
			assert.Len(t, r.Times.Workers, 2)
		}
		weights, err := s.Weights(ctx)
		assert.NoError(t, err)
		sum, err := checkpoint.Hash(weights)
		assert.NoError(t, err)
		assert.Equal(t, want, sum)
		places, err := sgd.ForEachWorker(ctx, s, func(worker int, rs []*sgd.Replica) ([]int, error) {
			return []int{worker, len(rs), rs[0].Device()}, nil
		})
		assert.NoError(t, err)
		assert.Equal(t, [][]int{{g.Rank() / 2, 1, g.Rank() % 2}}, places)
		assert.NoError(t, g.Barrier(ctx))
	})
	require.Equal(t, 7*some, strings.Count(logs[0].String(), "\n")-5)
	for r := 1; r < 4; r++ {
		require.Empty(t, logs[r].String(), "only rank 0 writes")
	}
	text, err := os.ReadFile(file.Name())
	require.NoError(t, err)
	var events []struct {
		Name, Ph string
		Tid      int
	}
	require.NoError(t, json.Unmarshal(text, &events))
	require.Len(t, events, 2*2+some*2*3, "names, and three stages of two workers")
}

// Rows that are the same in every step are learned by heart.
func TestFixedRows(t *testing.T) {
	s, err := sgd.New(t.Context(), func(_ context.Context, worker, _ int) (*sgd.Replica, error) {
		r, err := makeReplica(worker, 2)
		if err != nil {
			return nil, err
		}
		rows, err := digits.Train.Stage(batch, r.Backend)([]int32{int32(4 * worker), int32(4*worker + 1)})
		m := r.Task.(*trainer.ModelTask[nn.Batch]).Model
		r.Task = trainer.NewTask(m, sgd.Fixed(rows), nil)
		return r, err
	}, sgd.Options{Workers: 2, Devices: 1, Seed: seed})
	require.NoError(t, err)
	defer s.Close()
	losses := steps(t, s, 200)
	require.Less(t, losses[199], losses[0]/3)
	e, err := s.Evaluate(t.Context())
	require.NoError(t, err)
	require.Empty(t, e.Counts, "no test rows")
}

// Weights that are set are those that are returned, and training continues from them.
func TestWeights(t *testing.T) {
	s, other := open(t, sgd.Options{Workers: 2, Devices: 2}), open(t, sgd.Options{Workers: 2, Devices: 2})
	steps(t, s, 3)
	weights, err := s.Weights(t.Context())
	require.NoError(t, err)
	before := hash(t, s)
	require.NotEqual(t, before, hash(t, other))
	require.NoError(t, other.SetWeights(t.Context(), weights))
	require.Equal(t, before, hash(t, other))
	steps(t, other, 1)
	require.NotEqual(t, before, hash(t, other))
	require.Equal(t, before, hash(t, s), "the tensors are copies")

	for want, wrong := range map[string][]checkpoint.Named{
		`sgd: setting the weights: there is no tensor "layers.0.W"`:                         weights[1:],
		`sgd: setting the weights: there are two tensors "layers.0.W"`:                      append(slices.Clone(weights), weights[0]),
		"nn: cannot set layers.0.W of shape [12 64] from a tensor of shape [12]":            {{Name: "layers.0.W", Tensor: weights[1].Tensor}},
		`nn: no parameter "a"; the model has layers.0.W, layers.0.b, layers.1.W, layers.1.`: {{Name: "a", Tensor: weights[1].Tensor}},
	} {
		require.ErrorContains(t, s.SetWeights(t.Context(), wrong), want)
	}
	require.Equal(t, before, hash(t, s), "a mistake changes nothing")
}

// Functions see all replicas, with results in order.
func TestForEach(t *testing.T) {
	s := open(t, sgd.Options{Workers: 2, Devices: 3})
	places, err := sgd.ForEachModel(t.Context(), s, func(r *sgd.Replica) ([2]int, error) { return [2]int{r.Worker(), r.Device()}, nil })
	require.NoError(t, err)
	require.Equal(t, [][2]int{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}}, places)
	workers, err := sgd.ForEachWorker(t.Context(), s, func(worker int, rs []*sgd.Replica) (string, error) {
		return fmt.Sprint(worker, len(rs), rs[2].Worker(), rs[2].Device()), nil
	})
	require.NoError(t, err)
	require.Equal(t, []string{"0 3 0 2", "1 3 1 2"}, workers)

	bad := errors.New("bad")
	_, err = sgd.ForEachModel(t.Context(), s, func(r *sgd.Replica) (int, error) {
		if r.Worker() == 1 && r.Device() == 2 {
			return 0, bad
		}
		return 0, nil
	})
	require.EqualError(t, err, "sgd: ForEachModel: worker 1, device 2: bad")
	_, err = sgd.ForEachWorker(t.Context(), s, func(worker int, _ []*sgd.Replica) (int, error) {
		if worker == 1 {
			return 0, bad
		}
		return 0, nil
	})
	require.EqualError(t, err, "sgd: ForEachWorker: worker 1, device 0: bad")
	steps(t, s, 1) // it is not broken

	_, err = sgd.ForEachModel(t.Context(), s, func(r *sgd.Replica) (int, error) {
		if r.Worker() == 1 {
			r.Task.Params().Values.Float32s()[0]++
		}
		return 0, nil
	})
	require.NoError(t, err)
	_, err = s.Weights(t.Context())
	var diverged *trainer.DivergedError
	require.ErrorAs(t, err, &diverged, "the replicas differ")
	require.Equal(t, []int{3, 4, 5}, diverged.Ranks)
}
