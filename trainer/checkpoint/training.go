package checkpoint

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ringtrain/ringtrain/collective/errtext"
)

// Format is the value of the note "format" in every file that ringtrain writes.
const Format = "ringtrain.v1"

// The notes that Training itself manages.
const (
	noteFormat = "format"
	noteStep   = "step"
	noteSum    = "sha256"
)

// slotPrefix starts the names of the optimizer's tensors: "optimizer/m/layers.0.W".
const slotPrefix = "optimizer/"

// residualPrefix starts the names of residuals, by rank: "residual/0/layers.0.W".
const residualPrefix = "residual/"

// bestPrefix starts the names of the weights of the best evaluation: "best/layers.0.W".
const bestPrefix = "best/"

// ErrNone is returned by Latest if a directory has no intact checkpoint.
var ErrNone = errors.New("checkpoint: there is no intact checkpoint")

// A Training is the state of a training run after some step: everything needed to resume
// as if it had not been interrupted. It is one safetensors file. The optimizer's tensors
// are named "optimizer/SLOT/PARAMETER", the residuals of compression
// "residual/RANK/PARAMETER", the weights of the best evaluation "best/PARAMETER", and the
// notes are the metadata. The note sha256 covers
// everything else, so a single wrong bit is detected.
type Training struct {
	Step    int // steps done
	Weights []Named
	// Slots are the optimizer's tensors, by the name of the slot ("m", "v", "average").
	// Each list has the names and shapes of parameters.
	Slots map[string][]Named
	// Residuals are what gradient compression has held back on each rank; nil without
	// compression.
	Residuals [][]Named
	// Best are the weights of the best evaluation so far; nil if there was none, or if they
	// are Weights.
	Best  []Named
	Notes map[string]string // config, seed, number of workers: free text
}

// FileName returns the file name for a step. Names sort in the order of steps below
// 10^8; functions of this package compare the numbers.
func FileName(step int) string { return fmt.Sprintf("step-%08d.safetensors", step) }

// Write is [Writer.Write] with the zero Writer.
func (t Training) Write(dir string) (string, error) { return Writer{}.Write(dir, t) }

// Write atomically writes t into dir as FileName(t.Step) and returns the path.
// It changes nothing else in the directory. Write and Read reject a state that
// contains a NaN or an infinity.
func (w Writer) Write(dir string, t Training) (string, error) {
	path := filepath.Join(dir, FileName(t.Step))
	f, err := t.file(w.progress)
	if err != nil {
		return path, fmt.Errorf("checkpoint %s: %w", path, err)
	}
	return path, w.Save(path, f)
}

// file combines everything into one file.
func (t Training) file(progress func(bytes int)) (File, error) {
	f := File{Metadata: maps.Clone(t.Notes)}
	if f.Metadata == nil {
		f.Metadata = map[string]string{}
	}
	if t.Step < 0 {
		return f, fmt.Errorf("the step must be at least 0, not %d", t.Step)
	}
	f.Metadata[noteFormat], f.Metadata[noteStep] = Format, strconv.Itoa(t.Step)
	for _, n := range t.Weights {
		if strings.HasPrefix(n.Name, slotPrefix) || strings.HasPrefix(n.Name, residualPrefix) || strings.HasPrefix(n.Name, bestPrefix) {
			return f, fmt.Errorf("a parameter cannot be named %q", n.Name)
		}
		f.Tensors = append(f.Tensors, n)
	}
	for _, slot := range slices.Sorted(maps.Keys(t.Slots)) {
		if slot == "" || strings.Contains(slot, "/") {
			return f, fmt.Errorf("a slot cannot be named %q", slot)
		}
		for _, n := range t.Slots[slot] {
			f.Tensors = append(f.Tensors, Named{Name: slotPrefix + slot + "/" + n.Name, Tensor: n.Tensor})
		}
	}
	for rank, tensors := range t.Residuals {
		for _, n := range tensors {
			f.Tensors = append(f.Tensors, Named{Name: residualPrefix + strconv.Itoa(rank) + "/" + n.Name, Tensor: n.Tensor})
		}
	}
	for _, n := range t.Best {
		f.Tensors = append(f.Tensors, Named{Name: bestPrefix + n.Name, Tensor: n.Tensor})
	}
	if err := f.CheckFinite(); err != nil {
		return f, err
	}
	sum, err := f.sum(progress)
	f.Metadata[noteSum] = sum
	return f, err
}

// sum returns the SHA-256 of the file without the note that holds it.
func (f File) sum(progress func(bytes int)) (string, error) {
	f.Metadata = maps.Clone(f.Metadata)
	delete(f.Metadata, noteSum)
	p, err := f.plan()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	if err := p.write(tallied{h, progress}); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// tallied is a writer that reports the bytes it writes.
type tallied struct {
	io.Writer
	took func(bytes int)
}

// Write implements io.Writer.
func (t tallied) Write(b []byte) (int, error) {
	n, err := t.Writer.Write(b)
	t.took(n)
	return n, err
}

// Read reads a file written by Write and verifies its sum. If one of the checks fails,
// Read returns its error before reading tensors.
func Read(path string, checks ...Check) (Training, error) {
	f, err := Load(path, checks...)
	if err != nil {
		return Training{}, err
	}
	t, err := f.Training()
	if err != nil {
		return t, fmt.Errorf("checkpoint %s: %w", path, err)
	}
	return t, nil
}

// Summed reports whether metadata is that of a Training, which has a checksum of
// its contents.
func Summed(metadata map[string]string) bool { return metadata[noteSum] != "" }

// Training returns the Training stored in a file by Training.Write, and verifies its sum.
func (f File) Training() (Training, error) {
	t := Training{Notes: maps.Clone(f.Metadata)}
	if t.Notes[noteFormat] != Format || !Summed(t.Notes) {
		return t, errors.New("not a checkpoint of a run: it was not written by ringtrain train --checkpoint-every or --out")
	}
	sum, err := f.sum(func(int) {})
	if err != nil {
		return t, err
	}
	if sum != t.Notes[noteSum] {
		return t, fmt.Errorf("corrupt: the contents have SHA-256 %s, but were written with %s", sum, t.Notes[noteSum])
	}
	if err := f.CheckFinite(); err != nil {
		return t, err
	}
	if t.Step, err = strconv.Atoi(t.Notes[noteStep]); err != nil || t.Step < 0 {
		return t, fmt.Errorf("the step must be a whole number, at least 0, not %q", t.Notes[noteStep])
	}
	for _, note := range []string{noteFormat, noteStep, noteSum} {
		delete(t.Notes, note)
	}
	sorted, err := sortParts(f.Tensors, func(n *Named) *string { return &n.Name })
	t.Weights, t.Slots, t.Residuals, t.Best = sorted.Weights, sorted.Slots, sorted.Residuals, sorted.Best
	return t, err
}

// Latest reads the newest intact checkpoint of a directory. broken has an error for each
// newer one that is corrupt or rejected by a check, newest first. If there is no intact
// one, err is ErrNone.
func Latest(dir string, checks ...Check) (t Training, path string, broken []error, err error) {
	steps, err := Steps(dir)
	if err != nil {
		return t, "", nil, err
	}
	for _, step := range slices.Backward(steps) {
		path = filepath.Join(dir, FileName(step))
		t, err := Read(path, checks...)
		if err == nil && t.Step != step {
			err = fmt.Errorf("checkpoint %s contains step %d, not %d", path, t.Step, step)
		}
		if err == nil {
			return t, path, broken, nil
		}
		broken = append(broken, err)
	}
	return t, "", broken, ErrNone
}

// Steps returns the steps for which a directory has checkpoints, intact or not, in order.
func Steps(dir string) ([]int, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("checkpoint directory %s: %w", dir, errtext.Reason(err))
	}
	var steps []int
	for _, e := range entries {
		var step int
		if n, _ := fmt.Sscanf(e.Name(), "step-%d.safetensors", &step); n == 1 && step >= 0 && e.Name() == FileName(step) {
			steps = append(steps, step)
		}
	}
	slices.Sort(steps)
	return steps, nil
}

// Prune removes checkpoints that are obsolete after writing the one of step newest: first
// those of later steps, which were corrupt or belong to an abandoned run, then the oldest
// ones until keep are left. A keep of 0 or less keeps all. Directories with the name of a
// checkpoint stay.
func Prune(dir string, newest, keep int) error {
	steps, err := Steps(dir)
	if err != nil {
		return err
	}
	after, _ := slices.BinarySearch(steps, newest+1)
	gone := slices.Clone(steps[after:])
	if keep > 0 {
		gone = append(gone, steps[:max(0, after-keep)]...)
	}
	for _, step := range gone {
		path := filepath.Join(dir, FileName(step))
		if info, none := os.Lstat(path); none != nil || info.IsDir() {
			continue // already gone, or not written by Write
		}
		err = cmp.Or(err, os.Remove(path))
	}
	if err != nil {
		return fmt.Errorf("checkpoint: cannot remove an old checkpoint: %w", err)
	}
	return nil
}
