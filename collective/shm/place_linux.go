package shm

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ringtrain/ringtrain/collective"
)

// Limits of the ways, in bytes.
const (
	readers   = 2         // ranks at most that go by read: among more, copies are faster
	leastRead = 4 << 20   // by read: below, the calls of the kernel cost more than copies;
	mostRead  = 32 << 20  // above, copies find their way through the caches better
	readChunk = 512 << 10 // of a part that is read from each peer at a time
	placeStep = 16 << 10  // folded in place at a time, so that it is copied from the cache
)

// A location is where a rank's vector lies: in one of its Arenas, by number,
// or anywhere in its memory.
type location struct {
	arena, offset, addr uint64
}

func (l *location) put(b []byte) {
	for i, word := range [...]uint64{l.arena, l.offset, l.addr} {
		binary.LittleEndian.PutUint64(b[8*i:], word)
	}
}

func (l *location) get(b []byte) {
	l.arena, l.offset, l.addr = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])
}

// reach is how a rank gets at the vectors of others.
type reach struct {
	arenas  *Arenas
	own     *door
	reads   bool   // the ranks can read each other's memory, and gain by it
	mark    *probe // which others may look at
	mapped  *mapped
	places  []location // of the vectors of this call, by index
	views   [][]byte   // the same where they are in place
	scratch []byte     // for what was read
	reading reading
}

// What is mapped here: the memory of the ranks of the host, and the arenas of
// others.
type mapped struct {
	region  *region
	windows map[window][]byte
}

type window struct {
	peer int
	id   uint64
}

func (m *mapped) close() {
	_ = m.region.close()
	for _, mem := range m.windows {
		_ = unix.Munmap(mem)
	}
}

// locate finds where the own vector lies.
func (r *run) locate() {
	t := r.t
	l := &t.places[t.self]
	l.arena, l.offset = t.arenas.find(r.out)
	l.addr = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(r.out))))
}

// choose is the way of this call, which has been shown. A rank that can go by
// copy alone need not look at the others': so can they.
func (r *run) choose(call uint64) (w way, met bool, err error) {
	t := r.t
	byReading := t.reads && leastRead <= len(r.in) && len(r.in) <= mostRead
	if t.places[t.self].arena == 0 && !byReading {
		return byCopy, false, nil
	}
	if err := r.meet(call); err != nil {
		return 0, false, err
	}
	placed := true
	for peer := range t.ranks {
		if peer != t.self {
			t.places[peer].get(t.desks[peer][r.parity].inline)
		}
		placed = placed && t.places[peer].arena != 0
	}
	switch {
	case placed:
		return inPlace, true, r.view()
	case byReading:
		return byRead, true, nil
	}
	return byCopy, true, nil
}

// view finds the vectors of all ranks in place.
func (r *run) view() error {
	t := r.t
	for peer, l := range t.places {
		if peer == t.self {
			t.views[peer] = r.out
			continue
		}
		mem, err := t.window(peer, l.arena)
		if err == nil && (l.offset > uint64(len(mem)) || uint64(len(mem))-l.offset < uint64(len(r.out))) {
			err = fmt.Errorf("its vector of %d bytes would begin at %d of %d", len(r.out), l.offset, len(mem))
		}
		if err != nil {
			return t.unreachable(peer, err)
		}
		t.views[peer] = mem[l.offset:][:len(r.out):len(r.out)]
	}
	return nil
}

// window is an arena of a peer.
func (t *Transport) window(peer int, id uint64) ([]byte, error) {
	key := window{peer, id}
	if mem := t.mapped.windows[key]; mem != nil {
		return mem, nil
	}
	fd, size, err := callWhile(context.Background(), t.under, t.mem.bytes(t.mem.door(peer), doorBytes), id)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	mem, err := attach(fd, size)
	if err != nil {
		return nil, err
	}
	t.mapped.windows[key] = mem
	return mem, nil
}

// unreachableTime is for how long a peer's memory may be out of reach before
// that is why the View breaks.
const unreachableTime = time.Second

// unreachable breaks the View because a peer's memory cannot be had. Mostly the
// peer has just died, or has broken off because of another that died: the
// transport under this one hears which, a little later.
func (h *hostRanks) unreachable(peer int, err error) error {
	late := time.NewTimer(unreachableTime)
	defer late.Stop()
	select {
	case <-h.under.Failed():
		return h.under.Err()
	case <-late.C:
	}
	h.under.Abort(&collective.RankError{Rank: h.ranks[peer], Phase: "receive", Err: fmt.Errorf("shm: its memory cannot be reached: %w", err)})
	return h.failure()
}

// foldInPlace folds the own part of the vectors and leaves it in all of them.
func (r *run) foldInPlace() {
	t := r.t
	a, b := r.part(len(r.out), t.self)
	for lo := a; lo < b; lo += placeStep {
		hi := min(lo+placeStep, b)
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

// readPiece is the k-th chunk of a rank's part.
func (r *run) readPiece(peer, k int) (lo, hi int) {
	a, b := r.part(len(r.out), peer)
	return min(a+k*readChunk, b), min(a+(k+1)*readChunk, b)
}

// readChunks is how many chunks the longest part has.
func (r *run) readChunks() int {
	a, b := r.part(len(r.out), 0)
	return (b - a + readChunk - 1) / readChunk
}

// readOperands reads the others' operands of a chunk of the own part, and folds
// it.
func (r *run) readOperands(k int) error {
	t := r.t
	lo, hi := r.readPiece(t.self, k)
	if lo == hi {
		return nil
	}
	if need := len(t.ranks) * readChunk; len(t.scratch) < need {
		t.scratch = bytesOf(make([]uint64, need/8))
	}
	for peer := range t.ranks {
		t.operands[peer] = t.scratch[peer*readChunk:][:hi-lo]
		if peer == t.self {
			t.operands[peer] = r.out[lo:hi]
		} else if err := t.readFrom(peer, lo, t.operands[peer]); err != nil {
			return err
		}
	}
	t.chain.Range(r.h.Call.DType, r.h.Call.Op, r.at+lo/r.width, r.out[lo:hi], t.operands)
	return nil
}

// readResult reads a chunk of another rank's part.
func (r *run) readResult(k, peer int) error {
	lo, hi := r.readPiece(peer, k)
	return r.t.readFrom(peer, lo, r.out[lo:hi])
}

// readFrom reads what lies at an offset of a peer's vector.
func (t *Transport) readFrom(peer, offset int, b []byte) error {
	if err := t.reading.read(t.mem.pid(peer), uintptr(t.places[peer].addr)+uintptr(offset), b); err != nil {
		return t.unreachable(peer, err)
	}
	return nil
}
