package bench_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ringtrain/ringtrain/bench"
	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/config"
	"github.com/ringtrain/ringtrain/trainer/data"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/tuned"
)

// TestMain also runs the workers that tests launch, which are this program again.
func TestMain(m *testing.M) {
	if p, err := crew.ThisProcess(); err == nil && p.IsWorker() {
		os.Exit(runWorker(p, os.Args[1:]))
	}
	goleak.VerifyTestMain(collectivetest.InOwnDirectories(m))
}

// runWorker plays the part that the first argument names, and returns the exit code.
func runWorker(p crew.Process, args []string) int {
	part := crew.Part{Stdout: os.Stdout, Stderr: os.Stderr}
	switch args[0] {
	case "collective":
		part.Work = func(_ context.Context, w *crew.Worker) error { return processRun(args[1]).Work(w) }
	case "tune":
		part.Work = func(_ context.Context, w *crew.Worker) error { return tuneRun(args[1]).Work(w) }
	case "scaling":
		part.Work = func(ctx context.Context, w *crew.Worker) error {
			f := scalingRun(args[1], args[2], w.Stop())
			f.System = args[3]
			return f.Work(ctx, w)
		}
	}
	err := p.Run(context.Background(), part)
	var end *crew.EndError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &end) && end.Usage:
		return 2
	}
	return 1
}

// processRun measures two sizes between two processes. how is the transport, or what goes
// wrong.
func processRun(how string) *bench.CollectiveRun {
	place := crew.Local()
	f := &bench.CollectiveRun{
		Spec:  bench.Spec{Op: "allreduce", DType: collective.Float32, Reduction: collective.Sum, Sizes: []int{4, 4096}, Iterations: 2, Check: true},
		Ranks: 2, Memory: bench.Heap, Hosts: "local", Place: place, Order: tuned.Choice{Table: tuned.Off},
	}
	switch how {
	case "shared":
		f.Memory = bench.Shared
	case "too large":
		f.Memory, f.Spec.Sizes = bench.Shared, []int{1 << 46}
	case "other sizes":
		if os.Getenv(cluster.EnvLocal) == "1" {
			f.Spec.Sizes = []int{4}
		}
	case "stop":
		f.Spec.Iterations = 20_000
		if os.Getenv(cluster.EnvLocal) == "1" {
			f.Spec.Each = func(bench.Row) { stopSelf() }
		}
	case "double-tree":
		f.Algorithm = how
	default:
		f.Place.Transport = how
	}
	return f
}

// tuneRun tunes one size between two processes, and saves the table in out.
func tuneRun(out string) *bench.TuneRun {
	return &bench.TuneRun{Workers: 2, Sizes: []int{256}, Out: out, Place: crew.Local()}
}

// scalingRun trains for four steps with one worker and with two, on rows in dir. stop is
// a worker's.
func scalingRun(config, dir string, stop context.Context) *bench.ScalingRun {
	c := catalog.New()
	if err := c.Registry.Register("schedules", "faulty.v1", faulty(stop)); err != nil {
		panic(err)
	}
	return &bench.ScalingRun{
		Catalog: c, Config: config, Data: "mnist:" + dir, Workers: []int{1, 2}, Trials: 2, Steps: 4, System: "allreduce",
		Hosts: "local", Transport: "auto", Compute: bench.Compute{Flag: "real"},
	}
}

// faulty is a learn rate that kills or stops the second of two workers in its third step.
func faulty(stop context.Context) config.Func {
	faults := map[string]func(){
		"none": func() {},
		"kill": killSelf,
		"stop": func() {
			stopSelf()
			<-stop.Done()
		},
	}
	schedule := func(a config.Args) (any, error) {
		fault := faults[a.String("fault")]
		return optim.Schedule(func(step int) float64 {
			if step == 2 && os.Getenv(cluster.EnvLocal) == "1" {
				fault()
			}
			return .01
		}), nil
	}
	return config.Func{Params: []config.Param{{Name: "fault", Type: config.String, Required: true}}, Make: schedule}
}

// killSelf kills this process.
func killSelf() { onSelf((*os.Process).Kill) }

// stopSelf asks this process to stop, as a user of this machine could.
func stopSelf() {
	onSelf(func(p *os.Process) error { return p.Signal(crew.StopSignals()[0]) })
}

func onSelf(do func(*os.Process) error) {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = do(self)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// smallRows is a directory with 60 small images, made once.
var smallRows = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "ringtrain-rows-")
	if err != nil {
		return "", err
	}
	train, test := data.Generate(data.DigitsOptions{Train: 60, Test: 10, Side: 8})
	return dir, data.WriteMNIST(dir, train, test)
})

// faultyRun returns a scalingRun, with its arguments for workers, whose second worker has
// a fault.
func faultyRun(t *testing.T, fault string) (f *bench.ScalingRun, args func(config, system string) []string) {
	t.Helper()
	rows, err := smallRows()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "faulty.cfg")
	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(`[training]
batch_size = 10

[model]
@layers = "relu_relu_softmax.v1"
hidden_width = 4
dropout = 0.2

[optimizer]
@optimizers = "Adam.v1"

[optimizer.learn_rate]
@schedules = "faulty.v1"
fault = "FAULT"
`, "FAULT", fault)), 0o600))
	return scalingRun(path, rows, t.Context()), func(config, system string) []string { return []string{"scaling", config, rows, system} }
}
