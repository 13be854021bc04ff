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

// Products says how GPUs multiply matrices.
type Products struct {
	TF32  bool   // round factors to 10 bits of fraction
	BF16  bool   // round factors to bfloat16
	Timed string // directory where the fastest kernels found are kept; "" means kernels are not timed
}

// Check reports the first mistake in f.
func (f *Products) Check() error {
	switch {
	case f.TF32 && f.BF16:
		return errors.New("--tf32 and --bf16 cannot be combined: both set the rounding of matrix products; use one of them")
	}
	return nil
}

// CheckPlace reports why workers at p cannot multiply as f says.
func (f *Products) CheckPlace(p Placement) error {
	if !p.OnGPU() {
		switch {
		case f.TF32:
			return fmt.Errorf("--tf32 needs GPUs, and the workers compute on %v", p)
		case f.BF16:
			return fmt.Errorf("--bf16 needs GPUs, and the workers compute on %v", p)
		case f.Timed != "":
			return fmt.Errorf("--time-products needs GPUs, and the workers compute on %v", p)
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

// Multiplier names the library and mode of matrix products on GPUs, and cuDNN if it
// computes convolutions.
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

// blasName returns cuBLASLt with the version that is loaded.
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

// ByCuDNN reports whether cuDNN computes convolutions. products is the number of
// multiply-adds per row of the largest convolution, and batch the rows of a batch.
func (f *Products) ByCuDNN(products, batch int) bool {
	return products > 0 && (f.Timed != "" || products*batch >= gpu.LeastForCuDNN) && dnnName() != ""
}

// ConvGradMemory returns the bytes of temporary memory that the gradient of a convolution
// takes in a step. Its arguments are those of ByCuDNN, for this convolution, and the number
// of its weights and filters.
func (f *Products) ConvGradMemory(products, batch, weights, filters int) int {
	bytes := gpu.ConvGradMemory(weights, filters)
	if f.ByCuDNN(products, batch) { // trials need the same memory again
		bytes *= 2
	}
	return bytes
}

// timedProducts is the file of --time-products of one worker.
type timedProducts struct {
	GPU     string         `json:"gpu"`
	BLAS    string         `json:"blas"`
	DNN     string         `json:"dnn,omitempty"`
	Choices map[string]int `json:"choices"`
}

// libraries names the libraries that number the choices.
func (p timedProducts) libraries() string {
	if p.DNN == "" {
		return p.BLAS + " without cuDNN"
	}
	return p.BLAS + " and " + p.DNN
}

// timedFile returns the path of the file of worker local.
func timedFile(dir string, local int) string {
	return filepath.Join(dir, fmt.Sprintf("products-%d.json", local))
}

// timing sets the options of a worker's GPU for --time-products: it loads the choices of
// earlier runs, and saves new ones at once, so that no checkpoint depends on choices that
// were lost.
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
			return fmt.Errorf("saving the choices of --time-products in %s: %w", timedFile(dir, local), err)
		}
		return nil
	}
	return nil
}

// readTimed reads the choices of earlier runs. They are numbers of kernels that a library
// offers on a GPU, so both must be the same as now.
func readTimed(path string, now timedProducts) (map[string]int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var was timedProducts
	if err := json.Unmarshal(text, &was); err != nil {
		return nil, fmt.Errorf("%s is not a file of --time-products (%w): remove it to time products again", path, err)
	}
	if was.GPU != now.GPU || was.libraries() != now.libraries() {
		return nil, fmt.Errorf("%s was measured on %s with %s, and this machine has %s with %s: remove it to time products again", path, was.GPU, was.libraries(), now.GPU, now.libraries())
	}
	return was.Choices, nil
}
