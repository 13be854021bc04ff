package device

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/nn/gpu"
	"github.com/ringtrain/ringtrain/trainer/atomicfile"
)

// Products say how GPUs multiply matrices.
type Products struct {
	TF32  bool   // round factors to 10 bits of fraction
	BF16  bool   // round factors to bfloat16
	Timed string // directory of the fastest kernels that were found; "": none is looked for
}

// Check reports the first mistake in f.
func (f *Products) Check() error {
	switch {
	case f.TF32 && f.BF16:
		return errors.New("--tf32 and --bf16 both say what products round their factors to: give one of them")
	}
	return nil
}

// CheckPlace reports why workers at p cannot multiply as f says.
func (f *Products) CheckPlace(p Placement) error {
	if !p.OnGPU() {
		switch {
		case f.BF16:
			return fmt.Errorf("--bf16 is for GPUs, and the workers compute on %v", p)
		case f.Timed != "":
			return fmt.Errorf("--time-products is for GPUs, and the workers compute on %v", p)
		}
		return nil
	}
	for _, at := range p.info {
		if err := gpu.CheckBF16(at); f.BF16 && err != nil {
			return fmt.Errorf("--bf16: GPU %d (%s): %w", at.Index, at.Name, err)
		}
	}
	return nil
}

// Multiplier names what multiplies matrices on GPUs, and how, and cuDNN if it computes
// convolutions.
func (f *Products) Multiplier(byCuDNN bool) string {
	name := blasName()
	if byCuDNN {
		name += ", " + dnnName()
	}
	for _, how := range []struct {
		name  string
		given bool
	}{{"TF32", f.TF32}, {"bf16", f.BF16}, {"timed", f.Timed != ""}} {
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

// ByCuDNN reports whether cuDNN computes convolutions, the largest of which has so many
// multiply-adds for a row, in batches of so many rows.
func (f *Products) ByCuDNN(products, batch int) bool {
	return products > 0 && (f.Timed != "" || products*batch >= gpu.LeastForCuDNN) && dnnName() != ""
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
func (f *Products) timing(o *gpu.Options, on cuda.Info, local int) error {
	dir := f.Timed
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("--time-products: %w", err)
	}
	kept := timedProducts{GPU: on.Name, BLAS: blasName(), DNN: dnnName(), Choices: map[string]int{}}
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
