package job

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/config"
	"github.com/ringtrain/ringtrain/trainer/data"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/device"
	"github.com/ringtrain/ringtrain/trainer/job/machine"
)

// A Training is a Spec together with its config, both checked.
type Training struct {
	Spec      Spec
	Config    *config.Config
	Dataset   catalog.Dataset  // the rows
	Problem   catalog.Problem  // the network and the rows
	Workers   int              // on this machine
	Steps     int              // of each worker, including those before a resume; see Spec.Updates
	Batch     int              // rows of one worker in one micro-batch
	Cores     int              // that the workers of this machine share
	Placement device.Placement // of the workers of this machine

	Compression trainer.Compression // of gradients before they leave a worker

	filled    *config.Config // with the defaults of its functions
	statistic string         // name of a running statistic of the network; "" if it has none
	optimizer optim.Optimizer
	micro     int // micro-batches of one worker in one step
	reduce    trainer.Reduce
	sparse    trainer.Sparse
	evalBatch int // rows of one worker at a time
	evalEvery int
	tests     catalog.Tests // which workers have test rows
	memory    int           // limit of data and batches on this machine, in bytes; 0: none
}

// Settle reads the config and checks everything that can be checked before anything
// starts. Its errors are *crew.UsageErrors.
func (f Spec) Settle() (*Training, error) {
	s, err := f.Describe()
	if err != nil {
		return nil, err
	}
	if err := s.check(); err != nil {
		return nil, crew.Usage(err)
	}
	if err := checkOpenBLAS(); err != nil {
		return nil, crew.Usage(err)
	}
	if err := s.choosePlacement(); err != nil {
		return nil, crew.Usage(err)
	}
	return s, nil
}

// choosePlacement chooses where the workers compute, and checks that they have the memory.
func (s *Training) choosePlacement() error {
	var hindrance error
	switch {
	case s.Spec.Place.Transport == crew.TransportInProcess:
		hindrance = device.ErrInProcess
	case s.Compression.Form != trainer.Exact:
		hindrance = device.ErrCompressed
	case s.sparse == trainer.SparseOn:
		hindrance = device.ErrSparse
	case s.Spec.owned():
		hindrance = s.Spec.errServers()
	}
	var err error
	if s.Placement, err = s.Spec.Device.Place(s.Workers, hindrance, device.Trainable); err != nil {
		return err
	}
	if s.Placement.OnGPU() {
		err = s.checkDeviceMemory()
	}
	switch {
	case err != nil && s.Spec.Device.Device == device.Auto:
		s.Placement = device.OnCPU(err.Error())
	case err != nil:
		return fmt.Errorf("--device %s: %w", s.Spec.Device.Device, err)
	}
	if err := s.checkGraphs(); err != nil {
		return err
	}
	for _, f := range []interface{ CheckPlace(device.Placement) error }{&s.Spec.Device, &s.Spec.Graphs, &s.Spec.Products} {
		if err := f.CheckPlace(s.Placement); err != nil {
			return err
		}
	}
	return s.Spec.Device.CheckNCCL(s.Placement, s.Spec.Order.DeviceOrder(), s.AllWorkers())
}

// checkOpenBLAS returns an error if the user names an OpenBLAS that cannot be loaded.
func checkOpenBLAS() error {
	if os.Getenv(cpu.EnvOpenBLAS) == "" {
		return nil
	}
	_, err := cpu.OpenBLAS()
	if errors.Is(err, cpu.ErrNoOpenBLAS) { // the user has switched it off
		return nil
	}
	return err
}

// Describe is Settle without checking whether the data and the machine are large enough
// for all workers.
func (f Spec) Describe() (*Training, error) {
	if err := f.checkStrategy(); err != nil {
		return nil, crew.Usage(err)
	}
	path := f.Config
	f.Saving.Dir = cmp.Or(f.Saving.Dir, f.Saving.Resume)
	if err := data.ReadableAgain(path, "config"); err != nil {
		return nil, crew.Usage(err)
	}
	cfg, err := config.Load(path, f.Overrides)
	if err != nil {
		return nil, crew.Usage(err)
	}
	s := &Training{Spec: f, Config: cfg, filled: cfg}
	if filled, err := f.Catalog.Registry.Fill(cfg); err == nil {
		s.filled = filled
	}
	if err := s.read(Manual(f.Catalog)); err != nil {
		return nil, crew.Usage(err)
	}
	if s.Dataset, err = findData(&s.Spec); err != nil {
		return nil, crew.Usage(err)
	}
	if s.Problem, err = f.Catalog.Problem(cfg, s.Dataset); err != nil {
		return nil, crew.Usage(err)
	}
	_, test := s.Problem.Rows()
	s.evalBatch = min(s.evalBatch, max(test, 1))
	if err := s.tryModel(); err != nil {
		return nil, crew.Usage(err)
	}
	if s.optimizer, err = f.Catalog.Optimizer(cfg); err != nil {
		return nil, crew.Usage(err)
	}
	if o, ok := s.optimizer.(optim.Checker); ok {
		if err := o.Check(s.Steps); err != nil {
			return nil, crew.Usagef("the optimizer's %w", err)
		}
	}
	return s, nil
}

// read sets the fields from the config and the flags. A flag wins.
func (s *Training) read(m config.Manual) error {
	if err := m.Check(s.Config); err != nil {
		return err
	}
	for _, n := range []struct {
		path string
		to   *int
	}{
		{"training.iterations", &s.Steps},
		{"training.batch_size", &s.Batch},
		{"evaluation.batch_size", &s.evalBatch},
		{"evaluation.frequency", &s.evalEvery},
		{"ray.num_workers", &s.Workers},
		{"ray.num_cpus", &s.Cores},
		{"ray.object_store_memory", &s.memory},
	} {
		var err error
		if *n.to, err = m.Int(s.Config, n.path); err != nil {
			return err
		}
	}
	compress, err := m.String(s.Config, "training.compress")
	if err != nil {
		return err
	}
	sparse, err := m.String(s.Config, "training.sparse")
	if err != nil {
		return err
	}
	if err := readTests(s, m); err != nil {
		return err
	}
	if s.Spec.Workers != 0 {
		s.Workers = s.Spec.Workers
	}
	if s.Spec.Steps != 0 {
		s.Steps = s.Spec.Steps
	}
	if s.Spec.Batch != 0 {
		s.Batch = s.Spec.Batch
	}
	s.micro = max(s.Spec.Accumulate, 1)
	if s.reduce, err = trainer.ParseReduce(cmp.Or(s.Spec.Gradients.Reduce, "mean")); err != nil {
		return fmt.Errorf("--reduce %w", err)
	}
	s.Cores = min(cmp.Or(s.Cores, runtime.NumCPU()), runtime.NumCPU())
	if err := s.readCompression(compress); err != nil {
		return err
	}
	return readSparse(s, sparse)
}

// readCompression sets the compression of gradients to that of the flag or, without one,
// to that of the config, text.
func (s *Training) readCompression(text string) error {
	var err error
	if s.Compression, err = trainer.ParseCompression(text); err != nil {
		return s.errorf("training.compress", "training.compress: %w", err)
	}
	if s.Spec.Gradients.Compress == "" {
		return nil
	}
	s.Compression, err = trainer.ParseCompression(s.Spec.Gradients.Compress)
	return err
}

// readSparse sets how gradients of tables are sent as the flag or, without one, the config
// says: text.
func readSparse(s *Training, text string) error {
	var err error
	if s.sparse, err = trainer.ParseSparse(text); err != nil {
		return s.errorf("training.sparse", "training.sparse %w", err)
	}
	if s.Spec.Gradients.Sparse == "" {
		return nil
	}
	s.sparse, err = trainer.ParseSparse(s.Spec.Gradients.Sparse)
	return err
}

// check reports mistakes that depend on flags, config and data together.
func (s *Training) check() error {
	info := s.Dataset.Info()
	if err := Holdable(info); err != nil {
		return err
	}
	if err := crew.CheckWorkers(s.Workers, max(s.Spec.Place.Nodes, 1)); err != nil {
		return err
	}
	if err := checkBatch(s); err != nil {
		return err
	}
	if need, limit := s.footprint(), s.memory; limit > 0 && need > limit {
		return s.errorf("ray.object_store_memory", "%d workers keep %d bytes of data and batches in memory, more than ray.object_store_memory = %d: raise it or use fewer workers", s.Workers, need, limit)
	}
	if err := s.checkStatistic(); err != nil {
		return err
	}
	if err := checkSparse(s); err != nil {
		return err
	}
	if err := s.Spec.checkServed(s.Compression); err != nil {
		return err
	}
	if err := s.Spec.checkQuorum(s.AllWorkers()); err != nil {
		return err
	}
	if err := checkEvaluated(s); err != nil {
		return err
	}
	if s.AllWorkers() == 1 && s.micro > 1 && s.Compression.Form != trainer.Exact {
		return fmt.Errorf("--compress %v cannot be combined with --accumulate on one worker, because the result would differ from that of %d workers: leave one of them out, or use --workers %d", s.Compression, s.micro, s.micro)
	}
	return nil
}

// checkBatch reports a step that needs more rows than there are.
func checkBatch(s *Training) error {
	if b, ok := s.Problem.(catalog.Batcher); ok && b.OwnBatches() {
		return nil
	}
	// Divide, because the product may overflow an int.
	rows, _ := s.Problem.Rows()
	if all := s.AllWorkers(); s.Batch > rows/all/s.micro {
		workers := "workers"
		if all == 1 {
			workers = "worker"
		}
		return fmt.Errorf("a step of %d %s x --accumulate %d x --batch %d needs more rows than the data has (%d): lower one of them",
			all, workers, s.micro, s.Batch, rows)
	}
	return nil
}

// checkSparse reports what cannot be combined with gradients that always leave as rows.
func checkSparse(s *Training) error {
	why := ""
	switch {
	case s.sparse != trainer.SparseOn:
		return nil
	case s.Compression.Form != trainer.Exact:
		why = fmt.Sprintf("compressed gradients (%v): they are sent whole", s.Compression)
	case s.Spec.strategyName() != allReduce:
		why = fmt.Sprintf("--strategy %s, which sends gradients whole", s.Spec.Strategy)
	default:
		return nil
	}
	if s.Spec.Gradients.Sparse == "" {
		return s.errorf("training.sparse", "training.sparse: on cannot be combined with %s; set it to auto", why)
	}
	return fmt.Errorf("--sparse on cannot be combined with %s; use --sparse auto", why)
}

// checkStatistic reports settings that would change running statistics.
func (s *Training) checkStatistic() error {
	const why = "%s cannot be combined with this network: its %s is a running statistic, the mean over all rows of a step; %s"
	switch {
	case s.statistic == "":
	case s.Compression.Form != trainer.Exact && s.Spec.Gradients.Compress == "":
		return s.errorf("training.compress", why, "training.compress: it", s.statistic, "set it to none")
	case s.Compression.Form != trainer.Exact:
		return fmt.Errorf(why, "--compress "+s.Spec.Gradients.Compress, s.statistic, "leave out --compress")
	case s.reduce != trainer.ReduceMean:
		return fmt.Errorf(why, "--reduce "+s.reduce.String(), s.statistic, "use --reduce mean")
	case s.Spec.Gradients.Faithful:
		return fmt.Errorf(why, "--faithful-accumulate", s.statistic, "leave it out")
	}
	return nil
}

// AllWorkers returns the number of workers on all machines, assuming the same number on
// each.
func (s *Training) AllWorkers() int { return s.Workers * max(s.Spec.Place.Nodes, 1) }

// tryModel reports mistakes in the [model] section without building the model.
func (s *Training) tryModel() error {
	parameters, err := s.Problem.Declare()
	err = s.Spec.Catalog.Locate(s.Config, err)
	var here *config.Error
	switch {
	case errors.As(err, &here):
		return err
	case err != nil:
		return s.errorf("model", "section [model]: %w", err)
	}
	if q := (&nn.Params{List: parameters.Declared()}).Statistic(); q != nil {
		s.statistic = q.Name
	}
	// Values and gradients of one worker, in float32.
	if room := machine.Memory(); float64(parameters.Len())*8 > float64(room) {
		return s.errorf("model", "section [model]: its parameters and their gradients take %.3g GB, more than the %.3g GB of memory of this machine", float64(parameters.Len())*8/1e9, float64(room)/1e9)
	}
	return nil
}

// footprint returns how many bytes of data and batches the workers of this machine keep in
// memory.
func (s *Training) footprint() int {
	batches := s.Problem.Memory().Row * (s.Batch*s.micro + s.evalBatch)
	return s.Workers * (int(s.Dataset.Info().Bytes) + batches)
}

// errorf returns an error about a value of the config, with the position where it is set.
func (s *Training) errorf(path, format string, args ...any) error {
	e, _ := s.Config.Entry(path)
	err := fmt.Errorf(format, args...)
	return &config.Error{Pos: e.Pos, Msg: err.Error(), Err: errors.Unwrap(err)}
}
