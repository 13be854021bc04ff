package job

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/checkpoint"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/device"
	"github.com/ringtrain/ringtrain/trainer/job/event"
	"github.com/ringtrain/ringtrain/trainer/job/tuned"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// envSpec is the environment variable with the JSON of a sharedSpec. It makes the test
// program a process of the job.
const envSpec = "RINGTRAIN_TEST_SPEC"

// A sharedSpec is what the processes of a job in these tests share, and how one of them
// fails.
type sharedSpec struct {
	Config, Data, Dir, KeyFile string
	Resume                     bool
	Workers, Steps, Every      int
	Until                      string
	Transport                  string
	Strategy, Servers, Switch  string // Strategy "" is ps-sync with Servers, else allreduce
	Quorum                     int    // with Servers or Strategy
	Restarts                   int    // of servers
	ServerDir                  string

	Wait      time.Duration // of the layer waiting.v1; 0: there is none
	Straggler int           // this worker, if any, waits ten times as long

	Seed1 uint64 // of worker 1
	Kill  int    // worker 0 kills itself after this step
	Lose  string // the data of worker 1, which does not exist
}

// spec returns the Spec of this process.
func (s sharedSpec) spec() Spec {
	f := NewSpec(catalog.New(), s.Config)
	f.Data, f.Workers, f.Steps, f.Until = s.Data, s.Workers, s.Steps, s.Until
	f.Place.Transport = cmp.Or(s.Transport, f.Place.Transport)
	f.Saving = Saving{Dir: s.Dir, Every: s.Every}
	if s.Servers != "" || s.Strategy != "" {
		f.Strategy, f.Gradients.Servers, f.Gradients.Switch = cmp.Or(s.Strategy, psSync), s.Servers, s.Switch
		f.Gradients.Asynchrony.Quorum = s.Quorum
		f.Gradients.Restarts, f.Gradients.ServerDir = s.Restarts, s.ServerDir
		f.Gradients.Restarts = restarts(&f) // others must not ask for any
	}
	if s.Resume {
		f.Saving.Resume = s.Dir
	}
	f.Place.KeyFile = s.KeyFile
	f.Device.Device, f.Order.Table = "cpu", tuned.Off
	if p, err := crew.ThisProcess(); err == nil && p.IsWorker() {
		place, _, err := cluster.FromEnv()
		if err == nil && s.Straggler > 0 && place.Local == s.Straggler {
			s.Wait *= 10
		}
		if err == nil && place.Local == 1 {
			f.Seed = s.Seed1
			if s.Lose != "" {
				f.Data = s.Lose
			}
		}
	}
	if s.Wait > 0 {
		f.Catalog = withWaiting(s.Wait)
	}
	return f
}

// share returns the options of a launcher whose workers get s.
func (s sharedSpec) share(t *testing.T, h *heard) Options {
	text, err := json.Marshal(s)
	require.NoError(t, err)
	t.Setenv(envSpec, string(text))
	return Options{Display: h, Stderr: h, Args: []string{}}
}

// newShared returns the sharedSpec of tinySpec.
func newShared(t *testing.T) (sharedSpec, Spec) {
	f := tinySpec(t)
	return sharedSpec{Config: f.Config, Data: f.Data, Workers: 2, Steps: 6, Restarts: 3}, f
}

// A suicide is a stdout that kills its process after it has written the event of a step.
type suicide struct{ step int }

func (s suicide) Write(line []byte) (int, error) {
	n, err := os.Stdout.Write(line)
	if strings.Contains(string(line), `"event":"step"`) && strings.Contains(string(line), fmt.Sprintf(`"step":%d,`, s.step)) {
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			_ = self.Kill()
		}
	}
	return n, err
}

// runSpec is main in the processes of these tests, workers and launchers. It returns the
// code to exit with.
func runSpec() int {
	var s sharedSpec
	if err := json.Unmarshal([]byte(os.Getenv(envSpec)), &s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	o := Options{Stderr: os.Stderr, Args: []string{}}
	if s.Kill > 0 {
		o.Stdout = suicide{s.Kill}
	}
	if p, err := crew.ThisProcess(); err == nil && !p.IsWorker() {
		o.Display = results{os.Stdout}
	}
	err := Run(context.Background(), s.spec(), o)
	var usage *crew.UsageError
	switch {
	case errors.As(err, &usage):
		fmt.Fprintln(os.Stderr, err)
		return 2
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// results is a Display that writes the hash of the weights.
type results struct{ to *os.File }

func (r results) Emit(e event.Event) {
	if end, ok := e.(*event.Result); ok {
		fmt.Fprintln(r.to, end.WeightsSHA256)
	}
}

func (results) Log(string, []byte) {}
func (results) Notice(string)      {}

// A launcher starts worker processes, which train the same weights as goroutines do.
func TestRunStartsWorkers(t *testing.T) {
	s, f := newShared(t)
	want := resultOf(t, run(t, f)).WeightsSHA256
	s.Dir, s.Every = t.TempDir(), 3
	h := new(heard)
	require.NoError(t, Run(t.Context(), s.spec(), s.share(t, h)), h.said())
	end := resultOf(t, h)
	require.Equal(t, want, end.WeightsSHA256)
	require.Equal(t, 2, end.Workers)
	require.Equal(t, want, hashOf(t, filepath.Join(s.Dir, weightsFile)))
	require.Equal(t, []string{bestFile, weightsFile, checkpoint.FileName(3), checkpoint.FileName(6)}, namesIn(t, s.Dir))
	view := eventsOf[*event.View](h)
	require.Len(t, view, 1)
	require.NotEmpty(t, view[0].Cluster)
	require.NotEmpty(t, view[0].Gossip)
	require.NotEqual(t, view[0].Members[0].Addr, view[0].Members[1].Addr)
	require.Equal(t, 6, h.count("step"))
	require.Equal(t, 2, h.count("checkpoint"))
	require.Zero(t, h.count("ready"), "the user does not see what workers tell their launcher")
	require.Contains(t, h.said(), "cluster "+view[0].Cluster+" on ")
}

// Worker processes can resume a job of goroutines, and vice versa.
func TestWorkersResume(t *testing.T) {
	s, f := newShared(t)
	want := resultOf(t, run(t, f)).WeightsSHA256
	f.Steps, f.Saving.Dir = 2, t.TempDir()
	run(t, f)
	s.Dir, s.Resume, s.Steps = f.Saving.Dir, true, 4
	h := new(heard)
	require.NoError(t, Run(t.Context(), s.spec(), s.share(t, h)), h.said())
	require.Equal(t, []*event.Resumed{{Path: stepFile(s.Dir, 2), Step: 2}}, eventsOf[*event.Resumed](h))
	f.Steps, f.Saving = 6, Saving{Resume: s.Dir}
	require.Equal(t, want, resultOf(t, run(t, f)).WeightsSHA256)
}

// Workers with different seeds fail the job with a usage error that names the flag. Nothing
// is saved, and the lock is released.
func TestWorkersDiffer(t *testing.T) {
	s, _ := newShared(t)
	s.Dir, s.Seed1 = t.TempDir(), 5
	h := new(heard)
	_, err := runError(t, t.Context(), s.spec(), s.share(t, h))
	var end *crew.EndError
	require.ErrorAs(t, err, &end)
	require.True(t, end.Usage)
	require.ErrorContains(t, err, "the seed is ")
	require.Zero(t, h.count("step"))
	require.Empty(t, namesIn(t, s.Dir))
}

// A worker that cannot read its data ends the job with a usage error, before it begins.
func TestWorkerWithoutData(t *testing.T) {
	corrupt := tinyData(t)
	for _, name := range namesIn(t, corrupt) {
		path := filepath.Join(corrupt, name)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		text[len(text)-5] ^= 1 // in the checksum of gzip, so the header is valid
		require.NoError(t, os.WriteFile(path, text, 0o600))
	}
	for dir, want := range map[string]string{filepath.Join(corrupt, "none"): "--data: ", corrupt: corrupt} {
		s, _ := newShared(t)
		s.Lose = "mnist:" + dir
		_, err := runError(t, t.Context(), s.spec(), s.share(t, new(heard)))
		var end *crew.EndError
		require.ErrorAs(t, err, &end)
		require.True(t, end.Usage)
		require.False(t, end.Begun, "no work is lost")
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "worker 1")
	}
}

// A worker that is killed ends the job with an error that names it. Its last checkpoint
// stays, the locks do not, and the job can be resumed.
func TestKilledWorker(t *testing.T) {
	s, f := newShared(t)
	want := resultOf(t, run(t, f)).WeightsSHA256
	s.Dir, s.Every, s.Kill = t.TempDir(), 1, 3
	h := new(heard)
	_, err := runError(t, t.Context(), s.spec(), s.share(t, h))
	var end *crew.EndError
	require.ErrorAs(t, err, &end)
	require.True(t, end.Begun)
	require.False(t, end.Usage)
	require.ErrorContains(t, err, "worker 0")
	require.Zero(t, h.count("result"))
	require.NoFileExists(t, filepath.Join(s.Dir, launch.LockName))
	step, in := Newest(s.Dir)
	require.Equal(t, s.Dir, in)
	require.GreaterOrEqual(t, step, 2)
	f.Saving = Saving{Resume: s.Dir}
	require.Equal(t, want, resultOf(t, run(t, f)).WeightsSHA256)
}

// A signal stops workers after the step in progress. They save a checkpoint first.
func TestSignalStopsWorkers(t *testing.T) {
	s, _ := newShared(t)
	s.Dir, s.Steps = t.TempDir(), 100_000
	signals := make(chan os.Signal, 1)
	h := &heard{on: afterStep(5, func() { signals <- os.Interrupt })}
	o := s.share(t, h)
	o.Signals = signals
	_, err := runError(t, t.Context(), s.spec(), o)
	var end *crew.EndError
	require.ErrorAs(t, err, &end)
	require.Equal(t, os.Interrupt, end.Signal)
	require.NoError(t, end.Err)
	require.False(t, end.Forced)
	stopped := eventsOf[*event.Stopped](h)
	require.Len(t, stopped, 1)
	require.GreaterOrEqual(t, stopped[0].Steps, 5)
	require.Less(t, stopped[0].Steps, s.Steps)
	step, _ := Newest(s.Dir)
	require.Equal(t, stopped[0].Steps, step)
}

// Two processes started by mpirun form one job. Each launches one worker, the first shows the
// job, and both share the lock of the directory.
func TestLaunchedSeats(t *testing.T) {
	s, f := newShared(t)
	want := resultOf(t, run(t, f)).WeightsSHA256
	s.Dir = t.TempDir()
	s.share(t, new(heard))
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(free.Addr().String())
	require.NoError(t, err)
	require.NoError(t, free.Close())
	var seats [2]*exec.Cmd
	var said [2]strings.Builder
	for rank := range seats {
		seats[rank] = exec.CommandContext(t.Context(), os.Args[0])
		seats[rank].Stdout, seats[rank].Stderr = &said[rank], &said[rank]
		r := strconv.Itoa(rank)
		seats[rank].Env = append(os.Environ(), "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_LOCAL_SIZE=2", "OMPI_COMM_WORLD_RANK="+r, "OMPI_COMM_WORLD_LOCAL_RANK="+r,
			"PMIX_NAMESPACE="+strconv.Itoa(os.Getpid()), "MASTER_PORT="+port)
		require.NoError(t, seats[rank].Start())
	}
	for rank := range seats {
		require.NoError(t, seats[rank].Wait(), said[rank].String())
	}
	require.Equal(t, want+"\n", said[0].String())
	require.Empty(t, said[1].String(), "one process shows the job")
	require.Equal(t, []string{bestFile, weightsFile, checkpoint.FileName(6)}, namesIn(t, s.Dir))
}

// Worker processes get the key of an encrypted job.
func TestWorkersWithAKey(t *testing.T) {
	s, f := newShared(t)
	s.KeyFile = filepath.Join(t.TempDir(), "job.key")
	require.NoError(t, os.WriteFile(s.KeyFile, []byte(strings.Repeat("0123456789abcdef", 4)+"\n"), 0o600))
	h := new(heard)
	require.NoError(t, Run(t.Context(), s.spec(), s.share(t, h)), h.said())
	require.Equal(t, resultOf(t, run(t, f)).WeightsSHA256, resultOf(t, h).WeightsSHA256)
}

// opening is a Problem that opens its rows in another way.
type opening struct {
	catalog.Problem
	open func(ctx context.Context) (catalog.Rows, error)
}

func (o opening) Open(ctx context.Context) (catalog.Rows, error) { return o.open(ctx) }

// Open returns the rows, or an EndError if a signal comes first.
func TestOpen(t *testing.T) {
	f := tinySpec(t)
	s, err := f.Settle()
	require.NoError(t, err)
	rows, err := s.Open(t.Context(), Options{})
	require.NoError(t, err)
	require.Len(t, rows.Sum(), 64)

	require.NoError(t, os.RemoveAll(strings.TrimPrefix(f.Data, "mnist:")))
	_, err = s.Open(t.Context(), Options{})
	var usage *crew.UsageError
	require.ErrorAs(t, err, &usage)

	for _, signals := range []int{1, 2} {
		came := make(chan os.Signal, signals)
		for range signals {
			came <- os.Interrupt
		}
		never := make(chan struct{})
		s.Problem = opening{s.Problem, func(ctx context.Context) (catalog.Rows, error) {
			if signals == 1 {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			<-never // as a read that hangs
			return nil, nil
		}}
		_, err = s.Open(t.Context(), Options{Signals: came})
		var end *crew.EndError
		require.ErrorAs(t, err, &end, "%d signals", signals)
		require.Equal(t, os.Interrupt, end.Signal)
		require.False(t, end.Begun)
		close(never)
	}
}

// Workers are told the cache directory only if it is not the usual one. Paths in the list of
// jobs are absolute.
func TestEnvironOfWorkers(t *testing.T) {
	require.Empty(t, Environ(cluster.Config{}, device.OnCPU(""), nil)(0))
	require.Empty(t, Environ(cluster.Config{}, device.OnCPU(""), &Cache{})(0))
	require.Equal(t, []string{"RINGTRAIN_CACHE_DIR=elsewhere"}, Environ(cluster.Config{}, device.OnCPU(""), &Cache{dir: "elsewhere"})(1))
	require.Empty(t, absolute(""))
	here, err := os.Getwd()
	require.NoError(t, err)
	require.Equal(t, filepath.Join(here, "run"), absolute("run"))
	require.Equal(t, filepath.Join(here, "run"), absolute(filepath.Join(here, "x", "..", "run")))
}
