package job

import (
	"cmp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
)

// Each mistake in a Spec is an error that names the flag.
func TestSpecCheck(t *testing.T) {
	for want, change := range map[string]func(*Spec){
		"--workers must be at least 1":                     func(f *Spec) { f.Workers = -1 },
		"--steps must be at least 1":                       func(f *Spec) { f.Steps = -1 },
		"--batch must be at least 1":                       func(f *Spec) { f.Batch = -1 },
		"--accumulate must be at least 1":                  func(f *Spec) { f.Accumulate = 0 },
		"--reduce must be mean, sum or total, not \"max\"": func(f *Spec) { f.Gradients.Reduce = "max" },
		"--compress: ":                                     func(f *Spec) { f.Gradients.Compress = "zip" },
		"--bucket must be at least 1 byte, not -1":         func(f *Spec) { f.Gradients.Bucket = -1 },
		"--strategy must be one of allreduce, diloco":      func(f *Spec) { f.Strategy = "gossip" },
		"--log-level must be debug":                        func(f *Spec) { f.Watch.LogLevel = "loud" },
		"--metrics must be ADDRESS:PORT":                   func(f *Spec) { f.Watch.Metrics = "x" },
		"--checkpoint-every must be at least 1":            func(f *Spec) { f.Saving.Dir, f.Saving.Every = "a", -1 },
		"need --out: say where checkpoints go":             func(f *Spec) { f.Saving.Every = 5 },
		"--keep must be at least 1, or 0 for all":          func(f *Spec) { f.Saving.Keep = -1 },
		"--force needs --out or --server-dir":              func(f *Spec) { f.Saving.Force = true },
		"--max-restarts starts killed servers":             func(f *Spec) { f.Gradients.Restarts = 1 },
		"--out-fallback is the directory of --out":         func(f *Spec) { f.Saving.Dir, f.Saving.Fallback = "a", "./a" },
		"--resume cannot be combined with --fa":            func(f *Spec) { f.Saving.Resume, f.Gradients.Faithful = "a", true },
		"--order must be ring or any":                      func(f *Spec) { f.Order.Order = "random" },
		"--device must be auto, cpu, cuda":                 func(f *Spec) { f.Device.Device = "tpu" },
		"--graphs must be auto":                            func(f *Spec) { f.Graphs.How = "all" },
		"--tf32 and --bf16":                                func(f *Spec) { f.Products.TF32, f.Products.BF16 = true, true },
		"--nodes must be at least 1":                       func(f *Spec) { f.Place.Nodes = 0 },
		"--join needs --nodes":                             func(f *Spec) { f.Place.Join = []string{"a:1"} },
		"inproc runs in one process: it cannot":            func(f *Spec) { f.Place.Transport, f.Place.Nodes = crew.TransportInProcess, 2 },
	} {
		f := NewSpec(catalog.New(), "x.cfg")
		require.NoError(t, f.Check())
		change(&f)
		require.ErrorContains(t, f.Check(), want)
	}
}

// A resumed job writes to the directory that it resumes from, unless --out names another.
func TestResumeNamesTheDirectory(t *testing.T) {
	for _, dir := range []string{"", "other"} {
		f := NewSpec(catalog.New(), "../../examples/mnist.cfg")
		f.Data, f.Saving = DefaultData, Saving{Dir: dir, Resume: "earlier"}
		s, err := f.Settle()
		require.NoError(t, err)
		require.Equal(t, cmp.Or(dir, "earlier"), s.Spec.Saving.Dir)
	}
}
