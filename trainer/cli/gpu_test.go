//go:build gpu && cgo && linux

package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/cuda/emulator"
)

// standIn returns the environment that makes GPUs available: that of the emulator, or
// nothing on a machine that must have a GPU.
var standIn = sync.OnceValues(func() ([]string, error) {
	if os.Getenv("RINGTRAIN_REQUIRE_GPU") != "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	return emulator.BuildShared(ctx)
})

// onGPUs is command with GPUs. It builds the emulator first, so that this does not
// count towards the command's timeout.
func onGPUs(t *testing.T, args []string, more ...string) *exec.Cmd {
	t.Helper()
	env, err := standIn()
	if errors.Is(err, emulator.ErrNoCompiler) {
		t.Skip(err)
	}
	require.NoError(t, err)
	cmd := command(t, args...)
	cmd.Env = append(append(cmd.Env, env...), more...)
	return cmd
}

// fewSteps returns the arguments for a few steps of a small network, without
// evaluations except the last.
func fewSteps(t *testing.T, more ...string) []string {
	require.NotEmpty(t, smallDir())
	return append([]string{"train", config(t), "--data", "mnist:" + smallDir(), "--json", "--batch", "16", "--steps", "4", "--evaluation.frequency", "0"}, more...)
}

// trainOnGPUs is train with GPUs. It also returns stderr.
func trainOnGPUs(t *testing.T, args ...string) ([]event, string) {
	t.Helper()
	cmd := onGPUs(t, args)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Run(), "%s", stderr.String())
	all := events(t, stdout.Bytes())
	require.Equal(t, "result", all[len(all)-1].Event)
	return all, stderr.String()
}

// sameLosses requires that two runs have nearly equal losses.
func sameLosses(t *testing.T, want, got []event) {
	t.Helper()
	a, b := only(want, "step"), only(got, "step")
	require.Len(t, b, len(a))
	for i := range a {
		require.InDelta(t, a[i].Loss, b[i].Loss, 1e-5, "step %d", i)
	}
	require.InDelta(t, want[len(want)-1].Loss, got[len(got)-1].Loss, 1e-4, "of the evaluation")
}

// A GPU gives the losses of the CPU: alone, with NCCL, with sums on the host, and with
// several micro-batches.
func TestGPUTraining(t *testing.T) {
	for _, c := range []struct{ plan, args, gpu string }{
		{"alone; each step is a graph", "--workers 1", ""},
		{"in an order of its own; each step is a graph", "--workers 2", "--share-gpu --steps-per-launch 3"},
		{"before the sum and one after it", "--workers 2", "--share-gpu --graphs apart"},
		{"in an order of its own", "--workers 2", "--share-gpu --graphs off"},
		{"host memory, without NCCL", "--workers 2", "--share-gpu --nccl off"},
		{"in an order of its own; once in 2 steps", "--workers 2 --strategy diloco --inner-steps 2", "--share-gpu"},
		{"host memory, because NCCL does not keep ring order", "--workers 2 --order ring --accumulate 2", "--share-gpu"},
	} {
		t.Run(c.args+" "+c.gpu, func(t *testing.T) {
			args := fewSteps(t, strings.Fields(c.args)...)
			want := train(t, append(slices.Clip(args), "--device", "cpu")...)
			got, _ := trainOnGPUs(t, append(append(slices.Clip(args), strings.Fields(c.gpu)...), "--device", "cuda")...)
			sameLosses(t, want, got)
			last := got[len(got)-1]
			require.Contains(t, last.BLAS, "cuBLASLt")
			require.Contains(t, last.Plan, c.plan)
		})
	}
}

// Two workers share a GPU with the oldest supported NCCL too, which has no variable for
// that. A still older NCCL is not used.
func TestGPUOldNCCL(t *testing.T) {
	if os.Getenv("RINGTRAIN_REQUIRE_GPU") != "" {
		t.Skip("only the emulator can pass for another version")
	}
	for version, plan := range map[string]string{"2.19.3": "NCCL 2.19.3, in an order of its own", "2.12.12": "host memory, without NCCL"} {
		t.Setenv("RINGTRAIN_EMULATOR_NCCL", version)
		got, _ := trainOnGPUs(t, fewSteps(t, "--workers", "2", "--share-gpu", "--device", "cuda")...)
		require.Contains(t, got[len(got)-1].Plan, plan)
	}
}

// A checkpoint written on a GPU can be resumed on a CPU, and vice versa, and leads to
// the losses of an uninterrupted run.
func TestGPUResume(t *testing.T) {
	whole := train(t, fewSteps(t, "--device", "cpu", "--workers", "1")...)
	for _, devices := range [][2]string{{"cpu", "cuda"}, {"cuda", "cpu"}} {
		out := t.TempDir()
		trainOnGPUs(t, fewSteps(t, "--device", devices[0], "--workers", "1", "--steps", "2", "--out", out)...)
		rest, stderr := trainOnGPUs(t, fewSteps(t, "--device", devices[1], "--workers", "1", "--resume", out)...)
		require.Contains(t, stderr, "the library for matrix products")
		last := only(whole, "step")[2:]
		for i, e := range only(rest, "step") {
			require.Equal(t, last[i].Step, e.Step)
			require.InDelta(t, last[i].Loss, e.Loss, 1e-5)
		}
	}
}

// endless is a run without an end: something must stop it.
func endless(t *testing.T, more ...string) *running {
	return follow(t, onGPUs(t, fewSteps(t, append([]string{"--workers", "2", "--device", "cuda", "--share-gpu", "--steps", "1000000"}, more...)...)))
}

// If one of two ranks is killed, the other names it, with graphs and without.
func TestGPUKill(t *testing.T) {
	for _, graphs := range []string{"whole", "whole --steps-per-launch 3", "whole --bucket 1", "apart", "off", "off --bucket 1"} {
		t.Run(graphs, func(t *testing.T) {
			r := endless(t, append([]string{"--graphs"}, strings.Fields(graphs)...)...)
			require.NoError(t, syscall.Kill(r.workers(t)[1], syscall.SIGKILL))
			killed := time.Now()
			require.Equal(t, 1, r.finish(t), "%s", r.stderr)
			require.Less(t, time.Since(killed), 3*time.Second)
			t.Logf("ended after %v", time.Since(killed))
			lost := only(r.seen, "peer_lost")
			require.NotEmpty(t, lost, "%s", r.stderr)
			require.Equal(t, 1, lost[0].Rank)
			require.Less(t, lost[0].AfterMs, 1000.)
			require.Empty(t, only(r.seen, "result"))
		})
	}
}

// The only worker of another machine is killed, and the NCCL call on this machine never
// returns. No launcher ends the worker here, so it reports the lost rank and ends by
// itself.
func TestGPUStuck(t *testing.T) {
	if os.Getenv("RINGTRAIN_REQUIRE_GPU") != "" {
		t.Skip("only the emulator can be made to hang")
	}
	for _, graphs := range []string{"whole", "apart", "off"} {
		t.Run(graphs, func(t *testing.T) {
			job := fewSteps(t, "--workers", "1", "--device", "cuda", "--steps", "1000000", "--graphs", graphs)
			other, this := machines(t, job)
			require.NoError(t, other.Start())
			defer func() { _ = other.Wait() }()
			r := follow(t, this)
			require.NoError(t, other.Process.Kill()) // its worker dies with it
			killed := time.Now()
			require.Equal(t, 1, r.finish(t), "%s", r.stderr)
			require.Less(t, time.Since(killed), 15*time.Second)
			lost := only(r.seen, "peer_lost")
			require.NotEmpty(t, lost, "%s", r.stderr)
			require.Equal(t, 1, lost[0].Rank)
		})
	}
}

// machines returns a command on each of two machines. NCCL gets stuck on this one.
func machines(t *testing.T, args []string) (other, this *exec.Cmd) {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := free.Addr().String()
	require.NoError(t, free.Close())
	job := append(args[:len(args):len(args)], "--nodes", "2", "--cluster", t.Name())
	return onGPUs(t, append(job, "--join", addr), "NCCL_HOSTID=other"),
		onGPUs(t, append(job, "--bind", addr), "NCCL_HOSTID=this", "RINGTRAIN_EMULATOR_NCCL_STUCK=1")
}

// After a signal all ranks end at the same step and save a checkpoint.
func TestGPUStop(t *testing.T) {
	out := t.TempDir()
	r := endless(t, "--out", out)
	require.NoError(t, r.Process.Signal(os.Interrupt))
	require.Equal(t, 130, r.finish(t), "%s", r.stderr)
	stopped := only(r.seen, "stopped")
	require.Len(t, stopped, 1, "%s", r.stderr)
	require.Equal(t, stopped[0].Steps, only(r.seen, "checkpoint")[0].Step)
	steps := only(r.seen, "step")
	require.Equal(t, stopped[0].Steps, steps[len(steps)-1].Step)
}

// Every impossible request is one line, before anything starts.
func TestGPUMistakes(t *testing.T) {
	for want, c := range map[string]struct{ env, args string }{
		"2 processes for 1 GPU: start fewer, or add --share-gpu": {args: "--workers 2 --device cuda"},
		"there is no GPU 7": {args: "--workers 1 --device cuda:7"},
		"MiB of memory, and each of 2 workers needs about":               {"RINGTRAIN_EMULATOR_MEMORY=60000000", "--workers 2 --device cuda --share-gpu"},
		"--nccl must: NCCL cannot be loaded from /nonexistent":           {"RINGTRAIN_NCCL_LIB=/nonexistent", "--workers 2 --device cuda --share-gpu --nccl must"},
		"--graphs whole: a step of --accumulate":                         {args: "--workers 1 --device cuda --graphs whole --accumulate 2"},
		"--graphs apart: the workers compute on the CPU":                 {args: "--workers 1 --device cpu --graphs apart"},
		"ringtrain: --graphs whole: gradients are summed in host memory": {args: "--workers 2 --device cuda --share-gpu --graphs whole --nccl off"},
		"--nccl must: NCCL does not keep ring order":                     {args: "--workers 2 --device cuda --share-gpu --nccl must --order ring"},
		"is NCCL 2.12.12, and 2.19.3 or newer is needed":                 {"RINGTRAIN_EMULATOR_NCCL=2.12.12", "--workers 2 --device cuda --share-gpu --nccl must"},
		"ringtrain: --device cuda: no GPU can be used: cuBLAS":           {"RINGTRAIN_CUBLASLT_LIB=/nonexistent", "--workers 1 --device cuda"},
		"no GPU can be used: ":                                           {"RINGTRAIN_EMULATOR_DEVICES=0", "--workers 1 --device cuda"},
	} {
		if c.env != "" && os.Getenv("RINGTRAIN_REQUIRE_GPU") != "" {
			continue // only the emulator can be put into this state
		}
		cmd := onGPUs(t, fewSteps(t, strings.Fields(c.args)...), c.env)
		out, err := cmd.CombinedOutput()
		require.Error(t, err, "%v", c)
		require.Equal(t, 2, cmd.ProcessState.ExitCode(), "%s", out)
		require.Contains(t, string(out), want)
		require.Equal(t, 1, bytes.Count(out, []byte("\n")), "one line: %s", out)
	}
}

// With --device auto, the same conditions are no mistake: the CPU computes, and the
// first line says why.
func TestGPUAuto(t *testing.T) {
	args := fewSteps(t, "--device", "auto")
	for _, missing := range []string{"RINGTRAIN_CUDA_LIB=/nonexistent", "RINGTRAIN_CUBLASLT_LIB=/nonexistent", "RINGTRAIN_EMULATOR_LT=14.0.0"} {
		if strings.Contains(missing, "EMULATOR") && os.Getenv("RINGTRAIN_REQUIRE_GPU") != "" {
			continue
		}
		none := onGPUs(t, append(args, "--workers", "1"), missing)
		out, err := none.Output()
		require.NoError(t, err)
		view := only(events(t, out), "view")[0]
		require.Contains(t, view.Device, "the CPU (no GPU can be used")
	}
	got, _ := trainOnGPUs(t, append(args, "--workers", "1")...)
	require.Contains(t, only(got, "view")[0].Device, "GPU 0 (")
}

// A measurement says so if --device auto has chosen the CPU.
func TestGPUBenchAuto(t *testing.T) {
	for _, transport := range []string{"shm", "inproc"} {
		cmd := onGPUs(t, strings.Fields("bench collective --ranks 1 --device auto -b 4 -e 4 -n 2 --transport "+transport), "RINGTRAIN_CUDA_LIB=/nonexistent")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "# vectors on the CPU (")
	}
}

// bench collective checks results on GPUs as it does on the CPU.
func TestGPUBench(t *testing.T) {
	for transport, more := range map[string]string{"nccl": "", "staged-shm": "--nccl off"} {
		for _, op := range []string{"allreduce", "alltoall"} {
			args := strings.Fields(fmt.Sprintf("bench collective %s --ranks 2 --device cuda --share-gpu -b 4 -e 4K -f 32 -n 2 %s", op, more))
			cmd := onGPUs(t, args)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			require.NoError(t, err, "%s%s", out, stderr.String())
			require.Contains(t, string(out), "transport "+transport+" ranks 2")
			require.Contains(t, string(out), "# vectors on GPU 0 (")
			require.Contains(t, string(out), "Out of bounds values : 0 OK")
		}
	}
}
