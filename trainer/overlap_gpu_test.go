//go:build gpu && cgo && linux

package trainer_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
)

// everyParameter is a bucket size at which each parameter has its own bucket.
const everyParameter = 1

// Gradients that leave during the backward pass give the same bits as gradients that
// leave after it, however steps are repeated. The emulator alternates between running
// the branch as early and as late as possible.
func TestRecordedOverlap(t *testing.T) {
	for _, ranks := range []int{1, 2, 4} {
		j := job{ranks: ranks, batch: 16, steps: 9, dropout: .2, optimizer: optim.DefaultRAdam()}
		want := j.onDevices(t, nil)
		buckets := 6
		if ranks == 1 {
			buckets = 1
		}
		for _, c := range []struct {
			trainer.Recording
			plain   bool
			off     bool
			buckets int
		}{
			{buckets: buckets},
			{Recording: trainer.Recording{Steps: 4}, buckets: buckets},
			{plain: true, buckets: buckets},
			{Recording: trainer.Recording{Apart: true}, buckets: 1},
			{off: true, buckets: buckets},
		} {
			overlapped := j
			overlapped.bucket, overlapped.plain = everyParameter, c.plain
			recording := &c.Recording
			if c.off {
				recording = nil
			}
			for r, o := range overlapped.onDevices(t, recording) {
				require.NoError(t, o.err)
				require.Equal(t, want[0].values, o.values, "%d ranks, %v, plain %v", ranks, recording, c.plain)
				for i, e := range want[r].steps {
					require.Equal(t, e.Loss, o.steps[i].Loss, "step %d", i)
				}
				require.Equal(t, c.buckets, o.steps[0].Buckets)
			}
		}
	}
}

// Means are divided before they leave, bucket by bucket.
func TestRecordedOverlapOfMeans(t *testing.T) {
	j := job{ranks: 2, batch: 16, steps: 5, optimizer: optim.DefaultAdam(), change: func(_ int, c *trainer.Config) { c.Reduce = trainer.ReduceSum }}
	want := j.onDevices(t, nil)
	j.bucket = everyParameter
	for _, o := range j.onDevices(t, &trainer.Recording{}) {
		require.NoError(t, o.err)
		require.Equal(t, want[0].values, o.values)
	}
}

// A gradient that is not finite is found during the backward pass too, and the error
// names the rank and the parameter.
func TestOverlapNotFinite(t *testing.T) {
	j := job{ranks: 2, batch: 16, steps: 5, optimizer: optim.SGD{LearnRate: optim.Constant(1e30)}, change: func(rank int, c *trainer.Config) {
		c.Eval.Every = 0
	}}
	want := j.onDevices(t, nil)
	var bad *trainer.NotFiniteError
	require.ErrorAs(t, want[0].err, &bad)
	require.NotEmpty(t, bad.Parameter)
	j.bucket = everyParameter
	for _, o := range j.onDevices(t, nil) {
		require.EqualError(t, o.err, want[0].err.Error())
	}
}

// An interrupted model fails when only some gradients are final.
type interrupted struct {
	nn.Model[nn.Batch]
	steps int
}

var errInterrupted = errors.New("the batch is bad")

func (m *interrupted) Learn(p *nn.Pass, b nn.Batch) (nn.Buffer, int, error) {
	m.steps++
	if m.steps < 3 {
		return m.Model.Learn(p, b)
	}
	pass := *p
	pass.Final = func(lo int) {
		if lo > m.Params().Grads.Len()/2 {
			p.Final(lo)
		}
	}
	if _, _, err := m.Model.Learn(&pass, b); err != nil {
		return nn.Buffer{}, 0, err
	}
	return nn.Buffer{}, 0, errInterrupted
}

// An abandoning strategy asks its group for the error after Abandon.
type abandoning struct {
	*trainer.AllReduce
	group func() error
	after error
}

func (s *abandoning) Abandon(cause error) {
	s.AllReduce.Abandon(cause)
	s.after = s.group()
}

// A step abandoned while gradients are being sent ends on all ranks. The group is
// broken, and no rank waits for gradients that never come.
func TestOverlapAbandoned(t *testing.T) {
	var abandoned *abandoning
	out := job{ranks: 2, batch: 16, steps: 5, optimizer: optim.DefaultAdam(), bucket: everyParameter, change: func(rank int, c *trainer.Config) {
		if rank == 1 {
			task := taskOf(c)
			task.Model = &interrupted{Model: task.Model}
			g := groupOf(c)
			abandoned = &abandoning{AllReduce: c.Strategy.(*trainer.AllReduce), group: func() error { return g.Barrier(t.Context()) }}
			c.Strategy = abandoned
		}
	}}.onDevices(t, nil)
	require.ErrorIs(t, out[1].err, errInterrupted)
	require.ErrorIs(t, abandoned.after, errInterrupted)
	var lost *collective.RankError
	require.ErrorAs(t, out[0].err, &lost)
	require.Equal(t, 1, lost.Rank)
}

// A drawing has the names of a graph's nodes and the successors of each.
type drawing struct {
	names []string
	next  map[int][]int
}

var (
	drawnNode = regexp.MustCompile(`n(\d+) \[label="(.*)"\]`)
	drawnEdge = regexp.MustCompile(`n(\d+) -> n(\d+)`)
)

func readDrawing(t *testing.T, path string) drawing {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	d := drawing{next: map[int][]int{}}
	number := func(s string) int {
		n, err := strconv.Atoi(s)
		require.NoError(t, err)
		return n
	}
	for _, m := range drawnNode.FindAllStringSubmatch(string(text), -1) {
		require.Equal(t, len(d.names), number(m[1]))
		d.names = append(d.names, m[2])
	}
	for _, m := range drawnEdge.FindAllStringSubmatch(string(text), -1) {
		d.next[number(m[1])] = append(d.next[number(m[1])], number(m[2]))
	}
	return d
}

// before reports whether there is a path from one node to another.
func (d drawing) before(a, b int) bool {
	return slices.ContainsFunc(d.next[a], func(n int) bool { return n == b || d.before(n, b) })
}

// concurrent returns the nodes that come neither before nor after a sum, except other
// sums.
func (d drawing) concurrent(sum int) (names []string) {
	for n, name := range d.names {
		if n != sum && name != "nccl" && !d.before(n, sum) && !d.before(sum, n) {
			names = append(names, name)
		}
	}
	return names
}

// In the graph of a step, the sums of buckets are a branch parallel to the rest of the
// backward pass. All of them end before the vote, and the sum of votes before the update.
func TestRecordedOverlapIsABranch(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("RINGTRAIN_EMULATOR_GRAPHS", dir)
	j := job{ranks: 2, batch: 16, steps: 3, optimizer: optim.DefaultAdam(), bucket: everyParameter}
	for _, o := range j.onDevices(t, &trainer.Recording{}) {
		require.NoError(t, o.err)
	}
	drawn, err := filepath.Glob(filepath.Join(dir, "*.dot"))
	require.NoError(t, err)
	require.Len(t, drawn, j.ranks)
	for _, path := range drawn {
		d := readDrawing(t, path)
		var sums []int
		for n, name := range d.names {
			if name == "nccl" {
				sums = append(sums, n)
			}
		}
		require.Len(t, sums, 7, "%v", d.names)
		sums, votes := sums[:6], sums[6]
		vote, commit, update := slices.Index(d.names, "vote"), slices.Index(d.names, "commit"), slices.Index(d.names, "squared_norm_arena")
		require.True(t, d.before(vote, votes) && d.before(votes, commit) && d.before(commit, update))
		for i, sum := range sums {
			require.True(t, d.before(sum, vote), "sum %d ends before the vote", i)
			products := strings.Count(fmt.Sprint(d.concurrent(sum)), "cublasLtMatmul")
			// Three layers, each with W and b. The sums of the last layer run concurrently with
			// its product for the gradient of its input, both products of the middle layer and
			// the only product of the first.
			require.Equal(t, []int{4, 4, 2, 2, 0, 0}[i], products, "concurrent with sum %d: %v", i, d.concurrent(sum))
		}
	}
}
