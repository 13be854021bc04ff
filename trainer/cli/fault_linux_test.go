package cli_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	ossignal "os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/checkpoint"
	"github.com/ringtrain/ringtrain/trainer/cli"
)

// running is a job that is training.
type running struct {
	*exec.Cmd
	out    *bufio.Reader
	stderr *transcript
	seen   []event
}

// transcript collects output and reports when a text has been written.
type transcript struct {
	mu   sync.Mutex
	text strings.Builder
	want string
	said chan struct{} // closed when want has been written
}

func (s *transcript) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(b)
	if s.want != "" && strings.Contains(s.text.String(), s.want) {
		s.want = ""
		close(s.said)
	}
	return len(b), nil
}

func (s *transcript) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// expect returns a channel that is closed when text is written.
func (s *transcript) expect(text string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.want, s.said = text, make(chan struct{})
	return s.said
}

// begin starts a long job and returns once it has made some steps.
func begin(t *testing.T, args ...string) *running {
	return follow(t, command(t, append(args, "--steps", "1000000")...))
}

// follow is begin for a given command.
func follow(t *testing.T, cmd *exec.Cmd) *running {
	r := &running{Cmd: cmd, stderr: new(transcript)}
	pipe, err := r.StdoutPipe()
	require.NoError(t, err)
	r.Stderr = r.stderr
	r.out = bufio.NewReader(pipe)
	require.NoError(t, r.Start())
	for {
		e, err := r.next()
		require.NoError(t, err, "%s", r.stderr)
		if e.Event == "step" && e.Step >= 12 { // without waiting for others, not every step is reported
			return r
		}
	}
}

func (r *running) next() (event, error) {
	line, err := r.out.ReadBytes('\n')
	var e event
	if err == nil {
		err = json.Unmarshal(line, &e)
		r.seen = append(r.seen, e)
	}
	return e, err
}

// finish waits for the end and returns the exit code.
func (r *running) finish(t *testing.T) int {
	for {
		if _, err := r.next(); err == io.EOF {
			break
		} else {
			require.NoError(t, err)
		}
	}
	if err := r.Wait(); err != nil {
		require.IsType(t, &exec.ExitError{}, err)
	}
	return r.ProcessState.ExitCode()
}

// workers returns the process ids of the job's workers by local rank.
func (r *running) workers(t *testing.T) map[int]int {
	found := map[int]int{}
	procs, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	for _, stat := range procs {
		text, err := os.ReadFile(stat)
		if err != nil {
			continue // the process has ended
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if fields[1] != strconv.Itoa(r.Process.Pid) {
			continue
		}
		env, err := os.ReadFile(filepath.Join(filepath.Dir(stat), "environ"))
		require.NoError(t, err)
		for v := range bytes.SplitSeq(env, []byte{0}) {
			if rank, ok := strings.CutPrefix(string(v), "RINGTRAIN_LOCAL_RANK="); ok {
				local, err := strconv.Atoi(rank)
				require.NoError(t, err)
				pid, err := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
				require.NoError(t, err)
				found[local] = pid
			}
		}
	}
	return found
}

func requireGone(t *testing.T, pids map[int]int) {
	for local, pid := range pids {
		require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, "worker %d (pid %d) is still there", local, pid)
	}
}

// Whichever worker is killed, every survivor and the command name it, and the job ends.
func TestKillEachWorker(t *testing.T) {
	const n = 4
	for victim := range n {
		t.Run(fmt.Sprint(victim), func(t *testing.T) {
			r := begin(t, small(t, "--workers", strconv.Itoa(n))...)
			pids := r.workers(t)
			require.Len(t, pids, n)
			killed := time.Now()
			require.NoError(t, syscall.Kill(pids[victim], syscall.SIGKILL))
			require.Equal(t, 1, r.finish(t))
			require.Less(t, time.Since(killed), 3*time.Second)
			requireGone(t, pids)
			var by []int
			for _, e := range only(r.seen, "peer_lost") {
				require.Equal(t, victim, e.Rank)
				require.True(t, strings.HasSuffix(e.Node, fmt.Sprintf("/%d", victim)), e.Node)
				require.NotEmpty(t, e.Op)
				require.NotEmpty(t, e.Phase)
				require.Less(t, e.AfterMs, 1000.)
				by = append(by, e.SeenBy)
			}
			slices.Sort(by)
			require.Equal(t, slices.DeleteFunc([]int{0, 1, 2, 3}, func(r int) bool { return r == victim }), by, "%s", r.stderr)
			require.Contains(t, r.stderr.String(), fmt.Sprintf("worker %d (pid %d) was killed by signal 9", victim, pids[victim]))
			require.Empty(t, only(r.seen, "result"))
		})
	}
}

// After a signal all workers finish the same step, and a checkpoint is written.
func TestSignals(t *testing.T) {
	for sig, code := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 75, syscall.SIGHUP: 75} {
		for _, transport := range []string{"tcp", "inproc"} {
			t.Run(fmt.Sprint(sig, " ", transport), func(t *testing.T) {
				if ossignal.Ignored(sig) {
					t.Skip("the parent of this process ignores the signal, as nohup does with SIGHUP")
				}
				out := t.TempDir()
				r := begin(t, small(t, "--workers", "3", "--transport", transport, "--out", out)...)
				pids := r.workers(t)
				require.NoError(t, r.Process.Signal(sig))
				require.Equal(t, code, r.finish(t), "%s", r.stderr)
				requireGone(t, pids)
				require.Len(t, only(r.seen, "stopped"), 1)
				require.Empty(t, only(r.seen, "result"))
				require.Empty(t, only(r.seen, "peer_lost"))
				require.FileExists(t, filepath.Join(out, "model.safetensors"))
				done := only(r.seen, "stopped")[0].Steps
				require.Equal(t, last(only(r.seen, "step")).Step, done)
				require.Equal(t, []int{done}, steps(t, out), "one checkpoint")
				require.Len(t, only(r.seen, "checkpoint"), 1)
				require.Contains(t, r.stderr.String(), fmt.Sprintf("to resume from step %d, repeat the command with --resume %s", done, out))
				requireResumes(t, out, done, "--workers", "3", "--transport", transport)
			})
		}
	}
}

// requireResumes resumes an interrupted training for some steps and compares it with an
// uninterrupted one.
func requireResumes(t *testing.T, dir string, done int, args ...string) {
	end := strconv.Itoa(done + 25)
	resumed := train(t, small(t, append(args, "--steps", end, "--resume", dir)...)...)
	require.Equal(t, done+1, only(resumed, "step")[0].Step)
	whole := train(t, small(t, append(args, "--steps", end, "--transport", "inproc")...)...)
	require.Equal(t, last(whole).Weights, last(resumed).Weights)
}

// After a kill, the newest checkpoint leads to the weights of an uninterrupted
// training, whichever process was killed, and the command says how to resume.
func TestResumeAfterKill(t *testing.T) {
	out := t.TempDir()
	r := begin(t, small(t, "--workers", "3", "--batch", "32", "--out", out, "--checkpoint-every", "5", "--keep", "2")...)
	pids := r.workers(t)
	require.NoError(t, syscall.Kill(pids[0], syscall.SIGKILL))
	require.Equal(t, 1, r.finish(t))
	requireGone(t, pids)
	found := steps(t, out)
	require.NotEmpty(t, found)
	require.LessOrEqual(t, len(found), 3, "two, or three if the kill came before the oldest was removed")
	done := found[len(found)-1]
	require.Contains(t, r.stderr.String(), fmt.Sprintf("to resume from step %d, repeat the command with --resume %s", done, out))
	requireResumes(t, out, done, "--workers", "3", "--batch", "32")

	out = t.TempDir()
	r = begin(t, small(t, "--workers", "2", "--batch", "32", "--out", out, "--checkpoint-every", "5", "--transport", "inproc")...)
	for _, more := range []string{"--out", "--resume"} { // --force does not take it from a live process
		code, _, stderr := result(small(t, more, out, "--force", "--steps", "1000000")...)
		require.Equal(t, 2, code)
		require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
		require.Contains(t, stderr, fmt.Sprintf("--out %s is in use by job ringtrain-", out))
		require.Contains(t, stderr, fmt.Sprintf("(process %d on ", r.Process.Pid))
	}
	require.NoError(t, r.Process.Kill())
	require.Equal(t, -1, r.finishTorn(t))
	found = steps(t, out)
	requireResumes(t, out, found[len(found)-1], "--workers", "2", "--batch", "32")
}

// finishTorn is finish for a process whose last line may be half written.
func (r *running) finishTorn(t *testing.T) int {
	_, err := io.Copy(io.Discard, r.out)
	require.NoError(t, err)
	require.Error(t, r.Wait())
	return r.ProcessState.ExitCode()
}

// A full disk does not end a run without --require-checkpoint. Earlier checkpoints
// stay intact, and nothing of the failed one is left. The last checkpoint and the
// weights are retried until there is space.
func TestFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a small file system needs root")
	}
	for _, c := range []struct {
		more []string
		code int
	}{{nil, 0}, {[]string{"--require-checkpoint"}, 1}} {
		dir := t.TempDir()
		if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=480k", "tmpfs", dir).CombinedOutput(); err != nil {
			t.Skipf("tmpfs cannot be mounted here: %s", out)
		}
		t.Cleanup(func() { require.NoError(t, exec.Command("umount", dir).Run()) })
		filler := filepath.Join(dir, "filler")
		require.NoError(t, os.WriteFile(filler, make([]byte, 160<<10), 0o666))
		stdout, stderr := new(transcript), new(transcript)
		full := stdout.expect("save_retry")
		var free sync.WaitGroup
		free.Go(func() {
			select {
			case <-full:
				_ = os.Remove(filler)
			case <-t.Context().Done():
			}
		})
		t.Cleanup(free.Wait)
		args := append(small(t, "--workers", "2", "--batch", "32", "--steps", "40", "--out", dir, "--checkpoint-every", "10", "--keep", "0"), c.more...)
		code := cli.Main(catalog.New(), append(args, "--transport", "inproc"), stdout, stderr)
		require.Equal(t, c.code, code, stderr)
		all := events(t, []byte(stdout.String()))
		failed := only(all, "checkpoint_failed")
		require.Len(t, failed, 1)
		require.Contains(t, failed[0].Error, "no space left on device")
		require.Equal(t, 30, failed[0].Step)
		saved := []int{10, 20}
		if c.code == 0 {
			saved = append(saved, 40)
			require.NotEmpty(t, only(all, "save_retry"))
			require.Equal(t, 40, last(all).Steps)
			require.Equal(t, "result", last(all).Event)
			require.FileExists(t, filepath.Join(dir, "model.safetensors"))
		} else {
			require.Contains(t, stderr.String(), "saving step 30")
			require.Empty(t, only(all, "result"))
		}
		require.Equal(t, saved, steps(t, dir), "earlier checkpoints are intact")
		for _, step := range saved {
			_, err := checkpoint.Read(filepath.Join(dir, checkpoint.FileName(step)))
			require.NoError(t, err)
		}
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, e := range entries {
			require.False(t, strings.HasPrefix(e.Name(), "."), "%s is left", e.Name())
		}
	}
}

// A suspended worker cannot finish its step. The second signal ends all workers.
func TestSecondInterruptEndsAtOnce(t *testing.T) {
	r := begin(t, small(t, "--workers", "2")...)
	pids := r.workers(t)
	require.NoError(t, syscall.Kill(pids[1], syscall.SIGSTOP))
	heard := r.stderr.expect("stopping after this step")
	require.NoError(t, r.Process.Signal(os.Interrupt))
	<-heard
	begun := time.Now()
	require.NoError(t, r.Process.Signal(os.Interrupt))
	require.Equal(t, 130, r.finish(t))
	require.Less(t, time.Since(begun), 4*time.Second)
	requireGone(t, pids)
}

// If stdout is not read, the second signal still ends the job.
func TestStuckOutput(t *testing.T) {
	cmd := command(t, append(small(t, "--workers", "2"), "--steps", "1000000")...)
	read, write, err := os.Pipe()
	require.NoError(t, err)
	defer read.Close()
	cmd.Stdout = write
	require.NoError(t, cmd.Start())
	require.NoError(t, write.Close())
	r := &running{Cmd: cmd}
	size, err := unix.FcntlInt(read.Fd(), unix.F_GETPIPE_SZ, 0)
	require.NoError(t, err)
	for queued := 0; queued < size-4096; { // until the pipe is full
		queued, err = unix.IoctlGetInt(int(read.Fd()), unix.TIOCINQ)
		require.NoError(t, err)
		runtime.Gosched()
	}
	pids := r.workers(t)
	require.Len(t, pids, 2)
	begun := time.Now()
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	for cmd.Process.Signal(syscall.SIGTERM) == nil { // signals that come too close together count as one
		if time.Since(begun) > 10*time.Second {
			break
		}
		if state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid)); err != nil || bytes.Contains(state, []byte(") Z ")) {
			break
		}
	}
	require.Error(t, cmd.Wait())
	require.Less(t, time.Since(begun), 6*time.Second)
	requireGone(t, pids)
}

// A checkpoint that cannot be written after SIGTERM must not look as if it were saved.
// The second signal ends the retries.
func TestSaveThatFailsAfterSIGTERM(t *testing.T) {
	for _, workers := range []string{"1", "2"} {
		out := filepath.Join(t.TempDir(), "run")
		r := begin(t, small(t, "--workers", workers, "--out", out)...)
		require.NoError(t, os.RemoveAll(out))
		require.NoError(t, os.WriteFile(out, nil, 0o666))
		require.NoError(t, r.Process.Signal(syscall.SIGTERM))
		for {
			e, err := r.next()
			require.NoError(t, err, "%s", r.stderr)
			if e.Event == "save_retry" {
				break
			}
		}
		require.NoError(t, r.Process.Signal(syscall.SIGTERM))
		require.Equal(t, 1, r.finish(t))
		require.Contains(t, r.stderr.String(), "lost the last checkpoint, the trained weights and the best weights")
	}
}

// SIGTERM sent directly to one worker stops the job, which then fails.
func TestWorkerStoppedFromOutside(t *testing.T) {
	r := begin(t, small(t, "--workers", "2")...)
	require.NoError(t, syscall.Kill(r.workers(t)[1], syscall.SIGTERM))
	require.Equal(t, 1, r.finish(t))
	require.Contains(t, r.stderr.String(), "received a stop signal")
}

// A signal in the first moments reaches every worker, started or not.
func TestEarlyInterrupt(t *testing.T) {
	for after := time.Duration(0); after < 400*time.Millisecond; after += 80 * time.Millisecond {
		cmd := command(t, append(small(t, "--workers", "4"), "--steps", "1000000")...)
		require.NoError(t, cmd.Start())
		<-time.After(after) // any moment serves
		begun := time.Now()
		require.NoError(t, cmd.Process.Signal(os.Interrupt))
		require.Error(t, cmd.Wait())
		if cmd.ProcessState.ExitCode() != -1 { // -1: before the signal handler was installed
			require.Equal(t, 130, cmd.ProcessState.ExitCode(), "after %v", after)
		}
		require.Less(t, time.Since(begun), 4*time.Second)
	}
}

// If the launcher is killed, its workers end within a second.
func TestLauncherKilled(t *testing.T) {
	r := begin(t, small(t, "--workers", "3")...)
	pids := r.workers(t)
	require.NoError(t, r.Process.Kill())
	deadline := time.Now().Add(time.Second)
	require.Equal(t, -1, r.finish(t)) // stdout ends with the last worker
	for local, pid := range pids {
		for syscall.Kill(pid, 0) == nil && !zombie(pid) {
			require.True(t, time.Now().Before(deadline), "worker %d is still alive", local)
		}
	}
}

func zombie(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.HasPrefix(string(text[bytes.LastIndexByte(text, ')')+1:]), " Z")
}

// The first Ctrl-C also ends the wait for other machines.
func TestInterruptWhileWaiting(t *testing.T) {
	cmd := command(t, small(t, "--workers", "2", "--nodes", "2", "--bind", "127.0.0.1:0", "--cluster", t.Name())...)
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewReader(stderr)
	for {
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		if strings.Contains(line, "waiting for 1 more machine (2 of 4 workers have joined") {
			break
		}
	}
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	_, err = io.Copy(io.Discard, lines)
	require.NoError(t, err)
	require.Error(t, cmd.Wait())
	require.Equal(t, 130, cmd.ProcessState.ExitCode())
}

// Two machines are two network namespaces, with a cable between them.
func TestTwoNamespaces(t *testing.T) {
	within := twoMachines(t)
	job := small(t, "--workers", "2", "--nodes", "2", "--steps", "20", "--training.batch_size", "32")
	first, second := within(0, append(job, "--bind", "10.77.0.1")...), within(1, append(job, "--join", "10.77.0.1:7946")...)
	var out, errs [2]bytes.Buffer
	for i, cmd := range []*exec.Cmd{first, second} {
		cmd.Stdout, cmd.Stderr = &out[i], &errs[i]
		require.NoError(t, cmd.Start())
	}
	require.NoError(t, first.Wait(), "%s", &errs[0])
	require.NoError(t, second.Wait(), "%s", &errs[1])
	require.Contains(t, errs[0].String(), "neither encrypted nor authenticated")
	require.Equal(t, 1, strings.Count(errs[0].String(), "on the other machines: --join 10.77.0.1:7946"))
	one, two := events(t, out[0].Bytes()), events(t, out[1].Bytes())
	require.Equal(t, 4, one[len(one)-1].Workers)
	require.NotEmpty(t, one[len(one)-1].Weights)
	require.Equal(t, one[len(one)-1].Weights, two[len(two)-1].Weights)
	views := append(only(one, "view"), only(two, "view")...)
	require.Len(t, views, 2)
	require.Equal(t, "10.77.0.1:7946", views[0].Gossip)
	views[1].Gossip = views[0].Gossip // each machine writes its own weights
	require.Equal(t, views[0], views[1])
}
