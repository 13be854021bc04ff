package shm

import (
	"encoding/binary"
	"slices"
	"unsafe"
)

const readers = 2 // maximum number of ranks that go by read; among more, copies are faster

// A location says where a rank's vector lies: at an offset in one of its Arenas,
// or only at an address in its process. arena is the number of the arena, from 1,
// or 0.
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

// locate finds the location of this rank's vector.
func (r *run) locate() {
	t := r.t
	l := &t.locations[t.self]
	l.arena, l.offset = t.arenas.find(r.in)
	l.addr = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(r.in))))
}

// findOthers reads the locations of the other ranks' vectors, which they have shown.
func (r *run) findOthers() {
	t := r.t
	for peer := range t.ranks {
		if peer != t.self {
			t.locations[peer].get(t.slots[peer][r.parity].inline)
		}
	}
}

// choose returns the way of this call, which has been shown. matched says that it
// has compared the call with the others. If this rank's vector rules out all ways
// but byCopy, choose does not wait for the other locations: all other ranks see
// this rank's location and choose byCopy too.
func (r *run) choose(call uint64) (w way, matched bool, err error) {
	t := r.t
	if t.trialViews != nil {
		copy(t.views, t.trialViews)
		return inPlace, true, r.matchCalls(call)
	}
	byReading := t.reads && t.choices.Reads(len(r.in))
	if t.locations[t.self].arena == 0 && !byReading {
		return byCopy, false, nil
	}
	if err := r.matchCalls(call); err != nil {
		return 0, false, err
	}
	r.findOthers()
	switch {
	case !slices.ContainsFunc(t.locations, func(l location) bool { return l.arena == 0 }):
		return inPlace, true, r.view(len(r.out))
	case byReading:
		return byRead, true, nil
	}
	return byCopy, true, nil
}
