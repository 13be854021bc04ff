package job

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/trainer/checkpoint"
	"github.com/ringtrain/ringtrain/trainer/data"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/event"
	"github.com/ringtrain/ringtrain/trainer/job/tuned"
)

// tinyConfig trains 6 steps of 4 rows per worker, and evaluates after steps 3 and 6.
const tinyConfig = "[training]\nbatch_size = 4\niterations = 6\n[evaluation]\nfrequency = 3\n[ray]\nnum_workers = 2\n"

// tinyData returns the path of a data set of 50 rows to train on and 10 to test with.
func tinyData(t *testing.T) string {
	dir := t.TempDir()
	train, test := data.Generate(data.DigitsOptions{Train: 50, Test: 10, Side: 8})
	require.NoError(t, data.WriteMNIST(dir, train, test))
	return dir
}

// tinySpec returns the Spec of a job of two workers in this process. It takes milliseconds.
func tinySpec(t *testing.T) Spec {
	f := smallSpec(t, tinyConfig)
	f.Data = "mnist:" + tinyData(t)
	f.Place.Transport, f.Order.Table = crew.TransportInProcess, tuned.Off
	return f
}

// A heard is a Display that keeps events.
type heard struct {
	hidden
	on func(event.Event) // called with each event first; may be nil

	mu     sync.Mutex
	all    []event.Event
	stderr strings.Builder
}

func (h *heard) Emit(e event.Event) {
	if h.on != nil {
		h.on(e)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, e)
}

// Log keeps lines of workers as if they were written to stderr.
func (h *heard) Log(name string, line []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stderr.WriteString(name + ": " + string(line) + "\n")
}

// Write implements io.Writer for Options.Stderr.
func (h *heard) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stderr.Write(b)
}

// said returns everything that was written to stderr.
func (h *heard) said() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stderr.String()
}

// count returns the number of events of a kind.
func (h *heard) count(kind string) (n int) {
	for _, e := range h.all {
		if e.Kind() == kind {
			n++
		}
	}
	return n
}

// eventsOf returns the events of one type, in order.
func eventsOf[E event.Event](h *heard) (all []E) {
	for _, e := range h.all {
		if one, ok := e.(E); ok {
			all = append(all, one)
		}
	}
	return all
}

// resultOf returns the only result of a job.
func resultOf(t *testing.T, h *heard) *event.Result {
	all := eventsOf[*event.Result](h)
	require.Len(t, all, 1)
	return all[0]
}

// run runs a job that must succeed, and returns its events.
func run(t *testing.T, f Spec) *heard {
	h := new(heard)
	require.NoError(t, Run(t.Context(), f, Options{Display: h, Stderr: h}), h.said())
	return h
}

// runError runs a job that must fail, and returns its events and its error.
func runError(t *testing.T, ctx context.Context, f Spec, o Options) (*heard, error) {
	h, ok := o.Display.(*heard)
	if !ok {
		h = new(heard)
	}
	o.Display, o.Stderr = h, h
	err := Run(ctx, f, o)
	require.Error(t, err)
	require.NotContains(t, err.Error(), "\n", "errors are one line")
	return h, err
}

// hashOf returns the SHA-256 of the weights in a file.
func hashOf(t *testing.T, path string) string {
	f, err := checkpoint.Load(path)
	require.NoError(t, err)
	sum, err := checkpoint.Hash(f.Tensors)
	require.NoError(t, err)
	return sum
}

// namesIn returns the names of all files of a directory, including hidden ones.
func namesIn(t *testing.T, dir string) []string {
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	names := []string{}
	for _, f := range files {
		names = append(names, f.Name())
	}
	return names
}

// stepFile returns the path of the checkpoint of a step.
func stepFile(dir string, step int) string { return filepath.Join(dir, checkpoint.FileName(step)) }

// emptyFile returns the path of a new empty file.
func emptyFile(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	return path
}

// takenPort returns an address that is in use until the test ends.
func takenPort(t *testing.T) string {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = taken.Close() })
	return taken.Addr().String()
}

// tinyParams returns the parameters of the model of tinySpec.
func tinyParams(t *testing.T) *nn.Params {
	s := describe(t, tinySpec(t))
	probe, err := s.Problem.Probe(cpu.New(cpu.Options{}))
	require.NoError(t, err)
	return probe.Params
}

// inChild runs the test in a process of its own, and reports whether this is it. Tests need
// that if they change the process for good, or for go test too.
func inChild(t *testing.T) bool {
	const env = "RINGTRAIN_TEST_IN_CHILD"
	if os.Getenv(env) != "" {
		return true
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	child.Env = append(os.Environ(), env+"=1")
	said, err := child.CombinedOutput()
	require.NoError(t, err, string(said))
	require.Contains(t, string(said), "--- PASS: "+t.Name())
	return false
}

// flipLabel changes a label of a data set on disk.
func flipLabel(t *testing.T, dir string) {
	set, err := data.OpenMNIST(dir)
	require.NoError(t, err)
	set.Train.Labels[0] ^= 1
	require.NoError(t, data.WriteMNIST(dir, set.Train, set.Test))
}
