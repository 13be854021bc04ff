package trainer_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
)

// Sizes of the test's texts and of its two tables, both of which hold more than 64 KiB.
const (
	wordsOfText, words, wordWidth = 6, 900, 24
	classesOfText, topics         = 3, 700
)

// texts are training rows: ids that depend on the step and on the rank in a job with one
// micro-batch per rank. In every fourth step they have almost all ids, and in the step
// after that, rank 0 has no rows.
type texts struct{ rank int }

// Batch implements trainer.Batches.
func (s texts) Batch(step int) (nn.Batch, error) {
	rows := 3
	switch {
	case step%4 == 2:
		rows = 280
	case step%4 == 3 && s.rank == 0:
		rows = 0
	}
	ids, labels := make([]int32, rows*wordsOfText), make([]int32, rows*wordsOfText)
	for i := range ids {
		ids[i] = int32((i*11 + step*131 + s.rank*s.rank*37) % topics)
	}
	for i := range labels {
		labels[i] = int32((i + step + s.rank) % classesOfText)
	}
	return nn.Batch{X: nn.Tensor{Shape: []int{rows, wordsOfText}, Data: nn.HostInts(ids)}, Labels: nn.HostInts(labels)}, nil
}

// A textJob trains a classifier of texts with two tables and dropout.
type textJob struct {
	ranks, micro int
	sparse       trainer.Sparse
	connect      maker
	change       func(c *trainer.Config, s *trainer.AllReduce) // may be nil
}

func (j textJob) run(t *testing.T) []*outcome {
	t.Helper()
	if j.connect == nil {
		j.connect = inproc
	}
	views, transports := j.connect(t, j.ranks)
	out := make([]*outcome, j.ranks)
	var all sync.WaitGroup
	for r := range out {
		out[r] = new(outcome)
		all.Go(func() { out[r].err = j.rank(t, views[r], transports[r], out[r]) })
	}
	all.Wait()
	return out
}

func (j textJob) rank(t *testing.T, v collective.View, tr collective.Transport, o *outcome) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	g := collective.NewGroup(v, collective.OverTransport(v, tr), collective.Options{})
	defer g.Close()
	b := cpu.New(cpu.Options{})
	defer b.Close()
	layers := nn.Chain(
		nn.Add(&nn.Embed{Rows: words, Out: wordWidth, Dropout: .2}, &nn.Embed{Rows: topics, Out: wordWidth}),
		nn.EachPosition(nn.Chain(&nn.Relu{Out: 8, Dropout: .2}, &nn.Softmax{InitW: nn.GlorotUniform})))
	m, err := nn.NewPositionClassifier(b, layers, nn.Sequence{Positions: wordsOfText, IDs: topics, Classes: classesOfText}, 1)
	if !assert.NoError(t, err) {
		return err
	}
	task := &trainer.ModelTask[nn.Batch]{Model: m}
	for k := range max(1, j.micro) {
		task.Train = append(task.Train, texts{v.Self*max(1, j.micro) + k})
	}
	s := trainer.NewAllReduce(b, optim.DefaultAdam())
	s.SetSparse(j.sparse)
	c := trainer.Config{Groups: trainer.Only(g), Backend: b, Strategy: s, Task: task, Steps: 8, Seed: 3, Observer: o}
	if j.change != nil {
		j.change(&c, s)
	}
	o.result, err = trainer.Train(ctx, c)
	o.values = slices.Clone(m.Params().Values.Float32s())
	if err == nil {
		err = g.Barrier(ctx)
	}
	return err
}

// asRows returns how many tables left as rows in each step.
func (o *outcome) asRows() (tables []int) {
	for _, e := range o.steps {
		tables = append(tables, e.AsRows)
	}
	return tables
}

// Whole tables and rows have the same bits, those of one rank with as many micro-batches:
// with dropout, over any transport, and if ranks have no rows.
func TestRowsEqualWholeTables(t *testing.T) {
	for n := 2; n <= 8; n++ {
		if testing.Short() && n != 2 && n != 3 && n != 8 {
			continue
		}
		want := textJob{ranks: 1, micro: n}.run(t)[0]
		require.NoError(t, want.err)
		for over, connect := range map[string]maker{"in process": inproc, "tcp": overTCP} {
			if over == "tcp" && n%3 != 0 {
				continue // tests nothing new
			}
			for _, sparse := range []trainer.Sparse{trainer.SparseOff, trainer.SparseAuto, trainer.SparseOn} {
				t.Run(fmt.Sprintf("%d ranks %s sparse %v", n, over, sparse), func(t *testing.T) {
					for _, got := range (textJob{ranks: n, sparse: sparse, connect: connect}).run(t) {
						require.NoError(t, got.err)
						require.Equal(t, want.values, got.values)
						for i, e := range got.steps {
							require.Equal(t, want.steps[i].Loss, e.Loss, "step %d", i)
						}
					}
				})
			}
		}
	}
}

// Rows of several micro-batches of several ranks are added up before they leave.
func TestRowsOfMicroBatches(t *testing.T) {
	want := textJob{ranks: 3, micro: 2}.run(t)
	got := textJob{ranks: 3, micro: 2, sparse: trainer.SparseAuto}.run(t)
	require.NoError(t, got[0].err)
	require.Equal(t, want[0].values, got[0].values)
	require.Positive(t, got[0].result.AsRows)
}

// Gradients that are never zeroed have rows of all steps. Sums of means have rows, too.
func TestRowsOfOtherSums(t *testing.T) {
	for name, change := range map[string]func(*trainer.Config, *trainer.AllReduce){
		"accumulate": func(c *trainer.Config, _ *trainer.AllReduce) { c.Accumulate = true },
		"sum":        func(c *trainer.Config, _ *trainer.AllReduce) { c.Reduce = trainer.ReduceSum },
	} {
		for _, sparse := range []trainer.Sparse{trainer.SparseAuto, trainer.SparseOn} {
			want := textJob{ranks: 3, change: change}.run(t)
			got := textJob{ranks: 3, change: change, sparse: sparse}.run(t)
			require.NoError(t, got[0].err)
			require.Equal(t, want[0].values, got[0].values, "%s, sparse %v", name, sparse)
			require.Positive(t, got[0].result.AsRows, name)
		}
	}
}

// Tables leave as rows in steps in which that is fewer bytes. After a step in which it would
// not have been, a table leaves in a bucket once, because nobody knows better.
func TestSparseAutoChoosesEachStep(t *testing.T) {
	whole := textJob{ranks: 3}.run(t)[0]
	require.Equal(t, make([]int, 8), whole.asRows())
	auto := textJob{ranks: 3, sparse: trainer.SparseAuto}.run(t)
	for _, rank := range auto {
		require.Equal(t, []int{2, 2, 0, 0, 2, 2, 0, 0}, rank.asRows())
		require.Equal(t, 4, rank.result.AsRows)
	}
	always := textJob{ranks: 3, sparse: trainer.SparseOn}.run(t)
	require.Equal(t, []int{2, 2, 2, 2, 2, 2, 2, 2}, always[0].asRows())
	for rank := range auto {
		for i, e := range auto[rank].steps {
			require.Equal(t, whole.steps[i].Bytes, e.Bytes)
			require.InEpsilon(t, whole.steps[i].Sent, e.Plain, .1, "step %d", i)
			if e.AsRows > 0 {
				require.Less(t, e.Sent, e.Plain/5, "step %d", i)
				require.Equal(t, e.Sent, always[rank].steps[i].Sent)
			} else {
				require.InEpsilon(t, e.Plain, e.Sent, .1, "step %d", i)
			}
		}
		require.Greater(t, always[rank].steps[2].Sent, always[rank].steps[2].Plain, "almost all rows are more than the whole table")
	}
}

// A compression leaves nothing to send as rows, and one rank sends nothing.
func TestSparseNeedsExactGradientsOfRanks(t *testing.T) {
	packed := func(_ *trainer.Config, s *trainer.AllReduce) { s.SetCompression(compression(t, "bf16")) }
	want, got := textJob{ranks: 2, change: packed}.run(t), textJob{ranks: 2, change: packed, sparse: trainer.SparseOn}.run(t)
	require.NoError(t, got[0].err)
	require.Equal(t, want[0].values, got[0].values)
	require.Zero(t, got[0].result.AsRows)
	alone := textJob{ranks: 1, sparse: trainer.SparseOn}.run(t)
	require.NoError(t, alone[0].err)
	require.Zero(t, alone[0].result.AsRows)
}

// Ranks must agree on the form before they send anything.
func TestSparseIsCompared(t *testing.T) {
	for _, o := range (textJob{ranks: 2, change: func(c *trainer.Config, s *trainer.AllReduce) {
		if g, _ := c.Groups.Group(t.Context()); g.Rank() == 1 {
			s.SetSparse(trainer.SparseOn)
		}
	}}).run(t) {
		var settings *trainer.SettingsError
		require.ErrorAs(t, o.err, &settings)
		require.ErrorContains(t, o.err, "the form of sparse gradients")
	}
}
