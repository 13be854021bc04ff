package shm

import "fmt"

// view finds the vectors of n bytes of all ranks in shared memory.
func (r *run) view(n int) error {
	t := r.t
	for peer, l := range t.locations {
		if peer == t.self {
			t.views[peer] = r.in
			continue
		}
		if l.arena == 0 { // it lends nothing
			t.views[peer] = nil
			continue
		}
		mem, err := t.window(peer, l.arena)
		if err == nil && (l.offset > uint64(len(mem)) || uint64(len(mem))-l.offset < uint64(n)) {
			err = fmt.Errorf("its vector of %d bytes at offset %d does not fit into its arena of %d bytes", n, l.offset, len(mem))
		}
		if err != nil {
			return t.unreachable(peer, err)
		}
		t.views[peer] = mem[l.offset:][:n:n]
	}
	return nil
}

// foldInPlace folds this rank's part of all vectors and writes the result into
// all of them.
func (r *run) foldInPlace() {
	t := r.t
	a, b := r.part(len(r.out), t.self)
	step := t.choices.InPlaceStep // a result that has just been folded is copied from the cache
	for lo := a; lo < b; lo += step {
		hi := min(lo+step, b)
		for peer := range t.ranks {
			t.operands[peer] = t.views[peer][lo:hi]
		}
		result := r.out[lo:hi]
		t.chain.Range(r.h.Call.DType, r.h.Call.Op, r.at+lo/r.width, result, t.operands)
		for peer := range t.ranks {
			if peer != t.self {
				copy(t.views[peer][lo:hi], result)
			}
		}
	}
}
