package bench

import (
	"fmt"
	"slices"

	"github.com/ringtrain/ringtrain/trainer/job/machine"
)

// CheckMemory refuses sizes whose vectors this machine has no memory for. Spec must be valid.
func (f *CollectiveRun) CheckMemory() error { return f.fits(machine.Memory()) }

// fits is CheckMemory on a machine with this memory.
func (f *CollectiveRun) fits(room uint64) error {
	op, n := operations[f.Spec.Op], f.Ranks*f.Place.Nodes
	in, out, larger := op.in(n), op.out(n), max(op.in(n), op.out(n))
	var vectors int // in units of what larger elements take
	switch {
	case f.Placement.OnGPU() && f.Spec.Check:
		vectors = max(in, 2*out) // the input is gone when the results are made
	case f.Placement.OnGPU():
		vectors = in
	case f.Spec.Check:
		vectors = in + larger + out
	default:
		vectors = in + larger
	}
	return affordable(f.Spec.Sizes, float64(f.Ranks)*float64(vectors)/float64(larger), room, "--ranks")
}

// CheckMemory refuses sizes whose vectors this machine has no memory for.
func (f *TuneRun) CheckMemory() error { return f.fits(machine.Memory()) }

// fits is CheckMemory on a machine with this memory.
func (f *TuneRun) fits(room uint64) error {
	return affordable(f.Sizes, float64(f.Workers), room, "--workers")
}

// affordable compares the memory for a number of vectors of the largest size with room. The
// flag sets how many ranks have them.
func affordable(sizes []int, vectors float64, room uint64, flag string) error {
	most := slices.Max(sizes)
	if need := vectors * float64(most); need > float64(room) {
		return fmt.Errorf("sizes up to %s: the vectors of this machine's ranks take %.3g GB, more than the %.3g GB of its memory: lower -e or %s", FormatSize(most), need/1e9, float64(room)/1e9, flag)
	}
	return nil
}
