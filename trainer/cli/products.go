package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/nn/gpu"
	"github.com/ringtrain/ringtrain/trainer/atomicfile"
)

// productFlags say how GPUs multiply matrices.
type productFlags struct {
	tf32, bf16 bool
	timed      string // directory of what was found out; "": nothing is timed
}

func (f *productFlags) register(cmd *cobra.Command) {
	under(cmd, machineFlags, func(flags *pflag.FlagSet) {
		flags.BoolVar(&f.tf32, "tf32", false, "faster matrix products, and convolutions by cuDNN, on GPUs: round factors to 10 bits of fraction")
		flags.BoolVar(&f.bf16, "bf16", false, "faster still: round factors to bfloat16 (7 bits of fraction); weights, gradients and sums stay float32")
		flags.StringVar(&f.timed, "time-products", "", "time cuBLASLt's kernels for each matrix product and cuDNN's for each convolution, use the fastest, and keep the choice in `DIR` on this machine (products-*.json); later runs with the same DIR give the same bits")
	})
}

// check finds what is wrong with the flags alone.
func (f *productFlags) check(given func(string) bool) error {
	switch {
	case f.tf32 && f.bf16:
		return errors.New("--tf32 and --bf16 both say what products round their factors to: give one of them")
	case given("time-products") && f.timed == "":
		return errors.New("--time-products is empty: name a directory for what is found out, or leave it out")
	}
	return nil
}

// checkProducts finds out whether the workers multiply as they are told.
func (s *settings) checkProducts() error {
	f := s.flags.productFlags
	if !s.placement.onGPU() {
		switch {
		case f.bf16:
			return fmt.Errorf("--bf16 is for GPUs, and the workers compute on %v", s.placement)
		case f.timed != "":
			return fmt.Errorf("--time-products is for GPUs, and the workers compute on %v", s.placement)
		}
		return nil
	}
	for _, at := range s.placement.info {
		if err := gpu.CheckBF16(at); f.bf16 && err != nil {
			return fmt.Errorf("--bf16: GPU %d (%s): %w", at.Index, at.Name, err)
		}
	}
	return nil
}

// multiplier names what multiplies matrices on GPUs, and how, and cuDNN if it computes
// convolutions.
func (s *settings) multiplier() string {
	f, name := &s.flags.productFlags, blasName()
	if need, err := s.deviceNeed(); err == nil && need.byCuDNN { // an error is reported elsewhere
		name += ", " + dnnName()
	}
	for _, how := range []struct {
		name  string
		given bool
	}{{"TF32", f.tf32}, {"bf16", f.bf16}, {"timed", f.timed != ""}} {
		if how.given {
			name += ", " + how.name
		}
	}
	return name
}

// blasName is cuBLASLt with the version that is loaded.
func blasName() string {
	version, err := cuda.BLASVersion()
	if err != nil {
		return cuda.CublasLt.Name
	}
	return cuda.CublasLt.Name + " " + version
}

// dnnName returns cuDNN with its version, or "" if cuDNN cannot be used.
func dnnName() string {
	version, err := cuda.DNNVersion()
	if err != nil {
		return ""
	}
	return cuda.CuDNN.Name + " " + version
}

// timedProducts is what --time-products has found out for one worker, as a file
// keeps it.
type timedProducts struct {
	GPU     string         `json:"gpu"`
	BLAS    string         `json:"blas"`
	DNN     string         `json:"dnn,omitempty"`
	Choices map[string]int `json:"choices"`
}

// libraries names what the choices are numbers of.
func (p timedProducts) libraries() string {
	if p.DNN == "" {
		return p.BLAS + " without cuDNN"
	}
	return p.BLAS + " and " + p.DNN
}

// timedFile is where they are kept, for worker local of a machine.
func timedFile(dir string, local int) string {
	return filepath.Join(dir, fmt.Sprintf("products-%d.json", local))
}

// timing adds to the options of a worker's GPU what --time-products asks for: the
// choices of an earlier run, and that new ones are kept at once, so that no
// checkpoint is without those it comes from.
func (s *settings) timing(o *gpu.Options, local int) error {
	dir := s.flags.timed
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("--time-products: %w", err)
	}
	kept := timedProducts{GPU: s.placement.of(local).Name, BLAS: blasName(), DNN: dnnName(), Choices: map[string]int{}}
	there, err := readTimed(timedFile(dir, local), kept)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	maps.Copy(kept.Choices, there)
	o.Timed, o.Choices = true, maps.Clone(kept.Choices)
	o.Chosen = func(choices map[string]int) error {
		maps.Copy(kept.Choices, choices)
		text, err := json.MarshalIndent(kept, "", "\t")
		if err == nil {
			err = atomicfile.WriteFile(timedFile(dir, local), append(text, '\n'), atomicfile.Options{})
		}
		if err != nil {
			return fmt.Errorf("keeping the choices of --time-products in %s: %w", timedFile(dir, local), err)
		}
		return nil
	}
	return nil
}

// readTimed reads the choices of an earlier run, which must be on the same kind of
// GPU with the same libraries: they are numbers of what those offer.
func readTimed(path string, now timedProducts) (map[string]int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var was timedProducts
	if err := json.Unmarshal(text, &was); err != nil {
		return nil, fmt.Errorf("%s is not what --time-products keeps (%w): remove it to have products timed anew", path, err)
	}
	if was.GPU != now.GPU || was.libraries() != now.libraries() {
		return nil, fmt.Errorf("%s is of %s with %s, and this is %s with %s: remove it to have products timed anew", path, was.GPU, was.libraries(), now.GPU, now.libraries())
	}
	return was.Choices, nil
}
