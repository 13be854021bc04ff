package cli_test

import (
	"bytes"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/tensor"

	"github.com/ringtrain/ringtrain/trainer/checkpoint"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// The main job: processes find each other and train one model, and their events report
// everything.
func TestTrain(t *testing.T) {
	out := filepath.Join(t.TempDir(), "run")
	all := train(t, small(t, "--workers", "3", "--steps", "40", "--out", out, "--training.batch_size", "32")...)
	views := only(all, "view")
	require.Len(t, views, 1)
	require.Equal(t, 1, views[0].Epoch)
	require.Len(t, views[0].Members, 3)
	require.Len(t, only(all, "step"), 40)
	require.Equal(t, 40, last(only(all, "step")).Step, "all events count completed steps")
	evals := only(all, "eval")
	require.Len(t, evals, 4, "after 10, 20, 30 and 40 steps")
	for i, e := range evals {
		require.Equal(t, 10*(i+1), e.Step)
	}
	last := last(all)
	require.Equal(t, 3, last.Workers)
	require.Equal(t, 40, last.Steps)
	require.Equal(t, evals[3].Accuracy, last.Accuracy)
	require.Equal(t, evals[3].Loss, last.Loss)
	require.Greater(t, last.Accuracy, .2, "twice as good as guessing")
	require.Len(t, last.Weights, 64)
	samples := 0
	for _, e := range only(all, "step") {
		samples += e.Samples
	}
	require.Equal(t, 38*96+2*60, samples, "1500 rows are 15 batches of 96 and one of 60")
	require.InDelta(t, float64(samples)/last.Seconds, last.Rate, 1)
	require.Equal(t, filepath.Join(out, "step-00000040.safetensors"), only(all, "checkpoint")[0].Path)
	require.Equal(t, filepath.Join(out, "model.safetensors"), only(all, "weights")[0].Path)
	require.NotEmpty(t, last.BLAS)
	require.Equal(t, "memory shared by 3 ranks, in ring order", last.Plan)

	again := train(t, small(t, "--workers", "3", "--steps", "40", "--training.batch_size", "32")...)
	require.Equal(t, last.Weights, again[len(again)-1].Weights, "the same command gives the same bits")
	inproc := train(t, small(t, "--workers", "3", "--steps", "40", "--training.batch_size", "32", "--transport", "inproc")...)
	require.Equal(t, last.Weights, inproc[len(inproc)-1].Weights, "the other transport gives them too")
	seed := train(t, small(t, "--workers", "3", "--steps", "40", "--training.batch_size", "32", "--transport", "inproc", "--seed", "1")...)
	require.NotEqual(t, last.Weights, seed[len(seed)-1].Weights)

	code, stdout, stderr := result("eval", out, "--data", "mnist:"+smallDir(), "--json")
	require.Zero(t, code, stderr)
	measured := events(t, []byte(stdout))[0]
	require.Equal(t, last.Accuracy, measured.Accuracy)
	require.InDelta(t, last.Loss, measured.Loss, 1e-5)
	require.Equal(t, last.Weights, measured.Weights)
	require.Equal(t, 300, measured.Rows)
	code, stdout, _ = result("eval", filepath.Join(out, "model.safetensors"), "--data", "mnist:"+smallDir())
	require.Zero(t, code)
	require.Contains(t, stdout, "on 300 rows")
	code, stdout, stderr = result("eval", out)
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "on 300 rows", "the data it was trained with")
	code, _, stderr = result("eval", out, "--data", "digits")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "is for images of 14x14, but those of")
}

// N processes with batch B give the weights of one process with batch N*B, bit for bit.
func TestWorkersEqualOneLargeBatch(t *testing.T) {
	sgd := []string{"--steps", "50", "--model.dropout", "0", "--optimizer.@optimizers", "SGD.v1", "--optimizer.learn_rate", "0.1"}
	weights := func(workers, batch string) []checkpoint.Named {
		out := t.TempDir()
		train(t, append(small(t, "--workers", workers, "--training.batch_size", batch, "--out", out), sgd...)...)
		f, err := checkpoint.Load(filepath.Join(out, "model.safetensors"))
		require.NoError(t, err)
		return f.Tensors
	}
	for workers, batch := range map[string]string{"2": "48", "3": "32", "4": "24"} {
		many, one := weights(workers, batch), weights("1", "96")
		require.Len(t, many, len(one))
		for i := range one {
			require.Equal(t, one[i].Name, many[i].Name)
			require.Less(t, distance(one[i].Tensor, many[i].Tensor), 1e-5, "%s workers, %s", workers, one[i].Name)
		}
	}
}

func distance(a, b *tensor.Dense) float64 {
	x, y, most := a.Data().([]float32), b.Data().([]float32), 0.
	for i := range x {
		most = max(most, math.Abs(float64(x[i])-float64(y[i])))
	}
	return most
}

// Data files can be uncompressed, and their names can have the other spelling.
func TestPlainIDXFiles(t *testing.T) {
	dir := t.TempDir()
	set, err := data.OpenMNIST(smallDir())
	require.NoError(t, err)
	for part, images := range map[string]*data.Images{"train": set.Train, "t10k": set.Test} {
		require.NoError(t, data.WriteIDX(filepath.Join(dir, part+"-images.idx3-ubyte"), &data.IDX{Dims: []int{images.Rows, images.Height, images.Width}, Data: images.Pixels}))
		require.NoError(t, data.WriteIDX(filepath.Join(dir, part+"-labels.idx1-ubyte"), &data.IDX{Dims: []int{images.Rows}, Data: images.Labels}))
	}
	args := []string{"--steps", "5", "--transport", "inproc", "--workers", "2"}
	plain := train(t, append([]string{"train", config(t), "--json", "--model.hidden_width", "32", "--data", "mnist:" + dir}, args...)...)
	zipped := train(t, small(t, args...)...)
	require.Equal(t, zipped[len(zipped)-1].Weights, plain[len(plain)-1].Weights)

	path := filepath.Join(dir, "train-images.idx3-ubyte")
	require.NoError(t, os.Truncate(path, 5000))
	code, _, stderr := result("train", config(t), "--data", "mnist:"+dir)
	require.Equal(t, 2, code)
	require.Contains(t, stderr, path)
}

func TestPortInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	code, _, stderr := result(small(t, "--bind", taken.Addr().String())...)
	require.Equal(t, 2, code)
	require.Contains(t, stderr, taken.Addr().String()+": another process uses port ")
}

// Two launchers that meet over loopback make one job, as two machines do. They may
// share a directory, as machines with a shared file system do.
func TestTwoNodes(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr, dir := free.Addr().String(), t.TempDir()
	require.NoError(t, free.Close())
	job := small(t, "--workers", "2", "--nodes", "2", "--steps", "20", "--training.batch_size", "32", "--cluster", t.Name(), "--out", dir)
	first := command(t, append(job, "--bind", addr)...)
	out, err := first.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, first.Start())
	second := train(t, append(job, "--join", addr)...)
	lines := make([]byte, 0, 1<<16)
	for buf := make([]byte, 4096); ; {
		n, err := out.Read(buf)
		lines = append(lines, buf[:n]...)
		if err != nil {
			break
		}
	}
	require.NoError(t, first.Wait())
	all := events(t, lines)
	require.Equal(t, 4, all[len(all)-1].Workers)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 3, "no lock and no incomplete file: %v", entries)
	require.Equal(t, []int{20}, steps(t, dir))
	require.Len(t, append(only(all, "weights"), only(second, "weights")...), 4, "the last and the best")
	require.Equal(t, second[len(second)-1].Weights, all[len(all)-1].Weights)
	alone := train(t, small(t, "--workers", "4", "--steps", "20", "--training.batch_size", "32", "--transport", "inproc")...)
	require.Equal(t, alone[len(alone)-1].Weights, all[len(all)-1].Weights, "weights do not depend on where workers run")
}

// Machines with different commands detect it before the first step and report the
// settings that differ.
func TestDifferentCommandsAreRefused(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := free.Addr().String()
	require.NoError(t, free.Close())
	job := small(t, "--workers", "1", "--nodes", "2", "--steps", "20", "--training.batch_size", "32", "--cluster", t.Name())
	commands := []*exec.Cmd{
		command(t, append(job, "--bind", addr, "--ray.num_cpus", "1")...),
		command(t, append(job, "--join", addr, "--optimizer.learn_rate", "0.05", "--seed", "7")...),
	}
	var said [2]bytes.Buffer
	for i, c := range commands {
		c.Stderr = &said[i]
		require.NoError(t, c.Start())
	}
	for i, c := range commands {
		require.Error(t, c.Wait())
		require.Equal(t, 2, c.ProcessState.ExitCode(), &said[i])
	}
	for i, want := range []string{
		`optimizer\.learn_rate is 0\.001 here and 0\.05 on rank 1 \(\S+/0\); the seed is 0 here and 7 on rank 1 \(\S+/0\): give the same command`,
		`optimizer\.learn_rate is 0\.05 here and 0\.001 on rank 0 \(\S+/0\); the seed is 7 here and 0 on rank 0 \(\S+/0\): give the same command`,
	} {
		require.Regexp(t, want, said[i].String())
		require.Equal(t, 1, strings.Count(said[i].String(), "ringtrain: worker"), "once: %s", &said[i])
	}
}

// A model that diverges in its last step is a failure.
func TestValuesThatAreNotFinite(t *testing.T) {
	for _, transport := range []string{"tcp", "inproc"} {
		cmd := command(t, small(t, "--workers", "2", "--transport", transport, "--steps", "1", "--optimizer.@optimizers", "SGD.v1", "--optimizer.learn_rate", "1e39")...)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		require.Error(t, cmd.Run())
		require.Equal(t, 1, cmd.ProcessState.ExitCode())
		require.Contains(t, stderr.String(), "not finite")
		require.Empty(t, only(events(t, stdout.Bytes()), "result"))
	}
}

// Results that cannot be written are a failure.
func TestResultsThatAreLost(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("this system has no /dev/full")
	}
	defer full.Close()
	cmd := command(t, small(t, "--workers", "1", "--steps", "2")...)
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = full, &stderr
	require.Error(t, cmd.Run())
	require.Equal(t, 1, cmd.ProcessState.ExitCode())
	require.Contains(t, stderr.String(), "writing results")
}

// A style has its own count of iterations and replaces the table.
func TestLogStyle(t *testing.T) {
	code, stdout, stderr := result("train", config(t), "--workers", "2", "--transport", "inproc", "--steps", "5", "--evaluation.frequency", "2", "--log-style", "thinc")
	require.Zero(t, code, stderr)
	require.Regexp(t, `^0 \taccuracy: \d\.\d{3}\n2 \taccuracy: \d\.\d{3}\nFinal \taccuracy: \d\.\d{3}\n$`, stdout)
	chars := charsConfig(t, markovText(300), "--json=false", "--batch", "11", "--steps", "7", "--evaluation.frequency", "3", "--log-style", "spacy")
	code, stdout, stderr = result(chars...)
	require.Zero(t, code, stderr)
	lines := strings.Split(stdout, "\n")
	require.Regexp(t, `^  0       0 +\d\.\d{4}  `, lines[2], "bits are not in percent")
	require.Regexp(t, `^  2       6 `, lines[4], "3 steps see all 33 rows")
	require.Contains(t, refused(t, "train", config(t), "--log-style", "keras"), `--log-style must be ray, spacy, table or thinc, not "keras"`)
	require.Contains(t, refused(t, "train", config(t), "--log-style", "ray", "--json"), "--log-style ray cannot be combined with --json")
}
