package cli_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A taskTraining has the arguments of a short training, without workers and steps.
type taskTraining struct {
	task string
	args []string
}

// with returns the arguments of a run by a number of workers, each a process.
func (t taskTraining) with(workers string, more ...string) []string {
	return slices.Concat(t.args, []string{"--workers", workers, "--transport", "auto"}, more)
}

// taskTrainings returns a run of each task but image classification. An epoch of four
// workers has five steps.
func taskTrainings(t *testing.T) []taskTraining {
	path := cups(t, 120)
	return []taskTraining{
		{"classification", trainCSV("classify.cfg", path, "kind", "--batch", "5")},
		{"regression", trainCSV("regression.cfg", path, "price", "--batch", "5")},
		{"characters", charsConfig(t, markovText(600), "--evaluation.frequency", "0", "--batch", "4")},
	}
}

// Four worker processes end with the bits of one process that accumulates four
// micro-batches, over shared memory and over TCP.
func TestTasksInProcesses(t *testing.T) {
	for _, c := range taskTrainings(t) {
		t.Run(c.task, func(t *testing.T) {
			one := last(train(t, c.with("1", "--steps", "12", "--accumulate", "4")...))
			require.Equal(t, 1, one.Workers)
			for _, transport := range []string{"auto", "tcp"} {
				all := train(t, c.with("4", "--steps", "12", "--transport", transport)...)
				require.Len(t, only(all, "view")[0].Members, 4)
				require.Equal(t, one.Weights, last(all).Weights, transport)
			}
			other := last(train(t, c.with("1", "--steps", "12")...))
			require.NotEqual(t, one.Weights, other.Weights, "the rows of all workers count")
		})
	}
}

// A run by four processes that ends in the middle of an epoch, and is resumed by four
// others, ends with the bits of one without a break. So does one that a single process
// resumes, if it accumulates.
func TestTasksResumeInProcesses(t *testing.T) {
	for _, c := range taskTrainings(t) {
		t.Run(c.task, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			whole := last(train(t, c.with("4", "--steps", "12")...))
			half := last(train(t, c.with("4", "--steps", "7", "--out", dir)...))
			require.Equal(t, 7, half.Steps)
			require.NotEqual(t, whole.Weights, half.Weights, "the other steps change them")
			resumed := train(t, c.with("4", "--steps", "12", "--resume", dir, "--out", t.TempDir())...)
			require.Equal(t, 8, only(resumed, "step")[0].Step)
			require.Equal(t, whole.Weights, last(resumed).Weights)
			alone := last(train(t, c.with("1", "--accumulate", "4", "--steps", "12", "--resume", dir, "--out", t.TempDir())...))
			require.Equal(t, whole.Weights, alone.Weights, "one worker")
		})
	}
}
