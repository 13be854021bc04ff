package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/config"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/machine"
)

// trainFlags are the flags of "train".
type trainFlags struct {
	workers  int
	data     string
	out      string
	seed     uint64
	steps    int
	faithful bool
	json     bool
	logLevel string
	trace    string // directory
	metrics  string // address of the first worker's

	batch      int // 0: as the config says
	accumulate int // micro-batches; 0 and 1 are one
	reduce     string
	strategy   string
	compress   string // "": as the config says

	resume      string
	outFallback string
	force       bool
	every       int
	keep        int
	requireSave bool
	orderFlags
	bucketFlags
	placeFlags
	deviceFlags
	graphFlags
	productFlags
}

// settings is a training as config and flags describe it, checked.
type settings struct {
	flags     trainFlags
	config    *config.Config
	filled    *config.Config // with the defaults of its functions
	source    catalog.Source
	layers    func() (nn.Layer, error) // a new one for each worker
	optimizer optim.Optimizer

	workers   int // on this machine
	steps     int
	batch     int // rows of one worker in one micro-batch
	micro     int // micro-batches of one worker in one step
	reduce    trainer.Reduce
	compress  trainer.Compression
	evalBatch int // rows of one worker at a time
	evalEvery int
	cores     int // that the workers of this machine share
	memory    int // bytes of data and batches on this machine at most; 0: any

	placement placement // of the workers of this machine
}

// settle reads and checks everything that can be checked before anything
// starts. Its errors are the user's to mend.
func (a *app) settle(path string, f trainFlags) (*settings, error) {
	s, err := a.describe(path, f)
	if err != nil {
		return nil, err
	}
	if err := s.check(); err != nil {
		return nil, usage(err)
	}
	if err := checkOpenBLAS(); err != nil {
		return nil, usage(err)
	}
	if err := s.choosePlacement(); err != nil {
		return nil, usage(err)
	}
	return s, nil
}

// choosePlacement finds out where the workers compute, and whether there is room.
func (s *settings) choosePlacement() error {
	var hindrance error
	switch {
	case s.flags.Transport == "inproc":
		hindrance = errInProcess
	case s.compress.Form != trainer.Exact:
		hindrance = errCompressed
	}
	var err error
	if s.placement, err = s.flags.deviceFlags.place(s.workers, hindrance, trainable); err != nil {
		return err
	}
	if s.placement.onGPU() {
		err = s.checkDeviceMemory()
	}
	switch {
	case err != nil && s.flags.device == deviceAuto:
		s.placement = placement{why: err.Error()}
	case err != nil:
		return fmt.Errorf("--device %s: %w", s.flags.device, err)
	}
	if err := s.checkGraphs(); err != nil {
		return err
	}
	if err := s.checkProducts(); err != nil {
		return err
	}
	return s.flags.checkNCCL(s.placement, s.flags.orderFlags, s.allWorkers())
}

// trainable are the GPUs of this machine, if they can do what a training takes: the
// driver alone, which any desktop has, multiplies no matrices.
func trainable() ([]cuda.Info, error) {
	there, err := cuda.Devices()
	if err != nil {
		return nil, err
	}
	if _, err := cuda.BLASVersion(); err != nil {
		return nil, err
	}
	return there, cuda.BLASMismatch()
}

// checkOpenBLAS finds out whether the OpenBLAS can be had that the user names.
func checkOpenBLAS() error {
	if os.Getenv(cpu.EnvOpenBLAS) == "" {
		return nil
	}
	_, err := cpu.OpenBLAS()
	if errors.Is(err, cpu.ErrNoOpenBLAS) { // and none is wanted
		return nil
	}
	return err
}

// describe is settle without a look at whether data and machine have room for
// all the workers.
func (a *app) describe(path string, f trainFlags) (*settings, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, usagef("%s is not a file: every worker reads the config for itself, so a pipe or a terminal will not do", path)
	}
	cfg, err := config.Load(path, a.overrides)
	if err != nil {
		return nil, usage(err)
	}
	s := &settings{flags: f, config: cfg, filled: cfg}
	if filled, err := a.catalog.Registry.Fill(cfg); err == nil {
		s.filled = filled
	}
	if err := s.read(a.manual()); err != nil {
		return nil, usage(err)
	}
	if s.source, err = a.catalog.Data(f.data); err != nil {
		return nil, usage(err)
	}
	s.evalBatch = min(s.evalBatch, max(s.source.Info.TestRows, 1)) // there are no more
	s.layers = func() (nn.Layer, error) { return a.catalog.Layers(cfg) }
	if err := s.tryModel(); err != nil {
		return nil, usage(err)
	}
	if s.optimizer, err = a.catalog.Optimizer(cfg); err != nil {
		return nil, usage(err)
	}
	return s, nil
}

// read takes the numbers out of config and flags; a flag wins.
func (s *settings) read(m config.Manual) error {
	if err := m.Check(s.config); err != nil {
		return err
	}
	for _, n := range []struct {
		path string
		to   *int
	}{
		{"training.iterations", &s.steps},
		{"training.batch_size", &s.batch},
		{"evaluation.batch_size", &s.evalBatch},
		{"evaluation.frequency", &s.evalEvery},
		{"ray.num_workers", &s.workers},
		{"ray.num_cpus", &s.cores},
		{"ray.object_store_memory", &s.memory},
	} {
		var err error
		if *n.to, err = m.Int(s.config, n.path); err != nil {
			return err
		}
	}
	text, err := m.String(s.config, "training.compress")
	if err != nil {
		return err
	}
	if s.flags.workers != 0 {
		s.workers = s.flags.workers
	}
	if s.flags.steps != 0 {
		s.steps = s.flags.steps
	}
	if s.flags.batch != 0 {
		s.batch = s.flags.batch
	}
	s.micro = max(s.flags.accumulate, 1)
	if s.flags.reduce == "sum" {
		s.reduce = trainer.ReduceSum
	}
	s.cores = min(cmp.Or(s.cores, runtime.NumCPU()), runtime.NumCPU())
	return s.readCompression(text)
}

// readCompression finds how gradients are compressed: as the config says, if no
// flag does.
func (s *settings) readCompression(text string) error {
	var err error
	if s.compress, err = trainer.ParseCompression(text); err != nil {
		return s.errorf("training.compress", "training.compress: %w", err)
	}
	if s.flags.compress == "" {
		return nil
	}
	s.compress, err = trainer.ParseCompression(s.flags.compress)
	return err
}

// check looks at what only flags, config and data together can show.
func (s *settings) check() error {
	info := s.source.Info
	if err := holdable(s.source.Name, info.TrainRows+info.TestRows, info.Height, info.Width); err != nil {
		return err
	}
	if err := crew.CheckWorkers(s.workers, max(s.flags.Nodes, 1)); err != nil {
		return err
	}
	// Divided, for a product may be beyond what an int holds.
	if all := s.allWorkers(); s.batch > info.TrainRows/all/s.micro {
		return fmt.Errorf("%d workers with %d times a batch of %d take more rows in a step than the data has (%d): lower --batch, --accumulate or --workers",
			all, s.micro, s.batch, info.TrainRows)
	}
	if need, limit := s.footprint(info.TrainRows+info.TestRows, info.Height*info.Width), s.memory; limit > 0 && need > limit {
		return s.errorf("ray.object_store_memory", "%d workers keep %d bytes of data and batches in memory, more than ray.object_store_memory = %d: raise it or use fewer workers", s.workers, need, limit)
	}
	if s.allWorkers() == 1 && s.micro > 1 && s.compress.Form != trainer.Exact {
		return fmt.Errorf("--compress %v does not go with --accumulate on one worker, which would not make the bits of %d workers: leave one of them out, or use --workers %d", s.compress, s.micro, s.micro)
	}
	return nil
}

// allWorkers is the workers of all machines, if each has as many.
func (s *settings) allWorkers() int { return s.workers * max(s.flags.Nodes, 1) }

// tryModel finds mistakes of the [model] section without building the model.
// The number of classes is known only when the data have been read, and no
// layer minds it.
func (s *settings) tryModel() error {
	layers, err := s.layers()
	if err != nil {
		return err
	}
	info := s.source.Info
	parameters := nn.NewBuilder(0)
	if _, err := layers.Init([]int{info.Height * info.Width}, []int{10}, parameters); err != nil {
		return s.errorf("model", "section [model]: %w", err)
	}
	// Values and gradients of one worker, in float32.
	if room := machine.Memory(); float64(parameters.Len())*8 > float64(room) {
		return s.errorf("model", "section [model]: its parameters and their gradients take %.3g GB, more than the %.3g GB of memory of this machine", float64(parameters.Len())*8/1e9, float64(room)/1e9)
	}
	return nil
}

// footprint is the bytes of data and batches that the workers of this machine
// keep in memory.
func (s *settings) footprint(rows, features int) int {
	batches := 4 * features * (s.batch*s.micro + s.evalBatch)
	return s.workers * (rows*(features+1) + batches)
}

// errorf is an error about a value of the config, where it was set.
func (s *settings) errorf(path, format string, args ...any) error {
	e, _ := s.config.Entry(path)
	err := fmt.Errorf(format, args...)
	return &config.Error{Pos: e.Pos, Msg: err.Error(), Err: errors.Unwrap(err)}
}
