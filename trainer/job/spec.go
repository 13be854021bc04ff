package job

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/config"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/device"
	"github.com/ringtrain/ringtrain/trainer/job/tuned"
)

// A Spec says what to train, on which data, with how many workers, where, and what to
// save. Start from NewSpec, which has the defaults of "ringtrain train". All processes of
// a job must make the same Spec; Workers, Saving.Dir and Watch may differ between
// machines.
type Spec struct {
	Catalog   *catalog.Catalog  // implements the names in the config
	Config    string            // path of the config file, which every worker reads
	Overrides []config.Override // of values in it
	Data      string            // training and test rows: "digits", or "mnist:DIR"; "": those of the checkpoint in Saving.Resume, or else DefaultData
	Options   catalog.Options   // of Data; those that are not set are as in the checkpoint

	Workers    int    // on this machine; 0: as the config says
	Steps      int    // to train; 0: as the config says
	Batch      int    // rows of each worker in one micro-batch; 0: as the config says
	Accumulate int    // micro-batches of each worker in one step
	Strategy   string // how workers agree on the next weights, see Strategies; "" is "allreduce"
	Seed       uint64 // of initial weights, row order and dropout
	Until      string // train until an evaluation reaches this, see trainer.ParseTarget; "": for all steps

	Gradients Gradients
	Saving    Saving
	Place     crew.Place   // where the workers find each other
	Order     tuned.Choice // how gradients are summed
	Device    device.Choice
	Graphs    device.Graphs   // how GPUs run steps
	Products  device.Products // how GPUs multiply matrices
	Watch     Watch
}

// Gradients says how the gradients of all workers are combined.
type Gradients struct {
	Reduce   string // "mean" over all rows, "sum" of the workers' means, or "total" of all rows
	Compress string // how they are compressed for sending, see trainer.ParseCompression; "": as the config says
	Sparse   string // which gradients of tables are sent, see trainer.ParseSparse; "": as the config says
	Bucket   int    // send at least this many bytes at a time; 0: trainer.ChooseBucket
	Servers  string // of the strategies "ps-sync" and "ps-async": the number of processes on all machines, or Colocated; "": 1
	Switch   string // when to change the strategy, see trainer.ParseSwitches; "": only on request
	// Asynchrony is that of the strategies with parameter servers.
	Asynchrony Asynchrony
	// Restarts is how often each machine starts servers again that were killed. They keep
	// their shares in ServerDir; "" is a temporary directory.
	Restarts  int
	ServerDir string
	// Faithful never zeroes gradients, which reproduces a bug of Thinc's notebook.
	Faithful bool
	// Rounds are those of the strategy "diloco"; "local-sgd" uses only their Steps.
	Rounds trainer.Rounds
}

// DefaultInnerSteps is the length of a round.
const DefaultInnerSteps = 50

// NewSpec returns a Spec with the defaults of "ringtrain train": one machine, workers and
// steps as the config says, synthetic digits, and nothing saved. path is that of the
// config.
func NewSpec(c *catalog.Catalog, path string) Spec {
	return Spec{
		Catalog: c, Config: path, Accumulate: 1, Strategy: allReduce,
		Gradients: Gradients{Reduce: "mean", Rounds: trainer.DiLoCo(DefaultInnerSteps)},
		Saving:    Saving{Keep: 3}, Place: crew.Local(), Order: tuned.Choice{Order: "ring", Table: tuned.Auto},
		Device: device.Choice{Device: device.Auto, NCCL: "auto"}, Graphs: device.Graphs{How: device.GraphsAuto, PerLaunch: 1}, Watch: Watch{LogLevel: "error"},
	}
}

// Check reports the first mistake in f. Its errors name the flags of "ringtrain train".
func (f *Spec) Check() error {
	switch {
	case f.Workers < 0:
		return fmt.Errorf("--workers must be at least 1, not %d", f.Workers)
	case f.Steps < 0:
		return fmt.Errorf("--steps must be at least 1, not %d", f.Steps)
	case f.Batch < 0:
		return fmt.Errorf("--batch must be at least 1, not %d", f.Batch)
	case f.Accumulate < 1:
		return fmt.Errorf("--accumulate must be at least 1, not %d", f.Accumulate)
	case new(slog.Level).UnmarshalText([]byte(f.Watch.LogLevel)) != nil:
		return fmt.Errorf("--log-level must be debug, info, warn or error, not %q", f.Watch.LogLevel)
	}
	if _, err := trainer.ParseReduce(f.Gradients.Reduce); err != nil {
		return fmt.Errorf("--reduce %w", err)
	}
	if f.Gradients.Compress != "" {
		if err := CheckCompress(f.Gradients.Compress); err != nil {
			return err
		}
	}
	if f.Gradients.Sparse != "" {
		if err := CheckSparse(f.Gradients.Sparse); err != nil {
			return err
		}
	}
	for _, check := range []func() error{
		f.checkStrategy, f.checkServers, func() error { return checkRestarts(f) }, func() error { return checkUntil(f) }, f.Saving.check, func() error { return checkForce(f) }, f.checkResume, f.Order.Check, f.Watch.check, f.checkBucket, f.Device.Check, f.Graphs.Check, f.Products.Check, f.Place.Check,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkForce reports a Saving.Force without any directory to take.
func checkForce(f *Spec) error {
	if f.Saving.Force && f.Saving.Dir == "" && f.Saving.Resume == "" && f.Gradients.ServerDir == "" {
		return errors.New("--force needs --out or --server-dir: say which directory to take")
	}
	return nil
}

// checkResume reports what cannot be combined with Saving.Resume.
func (f *Spec) checkResume() error {
	if f.Saving.Resume != "" && f.Gradients.Faithful {
		return errors.New("--resume cannot be combined with --faithful-accumulate: checkpoints do not contain its sum of gradients")
	}
	return nil
}

// checkBucket is CheckBucket for Gradients.Bucket, where 0 is allowed.
func (f *Spec) checkBucket() error {
	switch {
	case f.Gradients.Bucket < 0:
		return CheckBucket(f.Gradients.Bucket)
	case f.Gradients.Bucket > 0 && f.asynchronous():
		return errors.New("--bucket has no effect with ps-async, ps-peers, --quorum and --straggler-timeout, which send gradients whole: leave it out")
	}
	return nil
}

// CheckBucket reports why a size cannot be Gradients.Bucket.
func CheckBucket(bytes int) error {
	if bytes < 1 {
		return fmt.Errorf("--bucket must be at least 1 byte, not %d", bytes)
	}
	return nil
}

// CheckCompress reports why a form cannot be Gradients.Compress.
func CheckCompress(form string) error {
	if _, err := trainer.ParseCompression(form); err != nil {
		return fmt.Errorf("--compress: %w", err)
	}
	return nil
}

// CheckSparse reports why a value cannot be Gradients.Sparse.
func CheckSparse(text string) error {
	if _, err := trainer.ParseSparse(text); err != nil {
		return fmt.Errorf("--sparse %w", err)
	}
	return nil
}

// Alone reports whether this process starts all workers of the job.
func (f *Spec) Alone() bool { return f.Place.Nodes == 1 && f.Place.Process.Launched == nil }
