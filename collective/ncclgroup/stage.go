package ncclgroup

import (
	"context"
	"slices"

	"github.com/ringtrain/ringtrain/collective"
)

// stageAlign is the alignment of vectors in staging memory: a cache line, which suits every
// type.
const stageAlign = 64

// A copied vector is a vector in device memory with its copy in pinned host memory.
type copied struct {
	device  uintptr
	offset  int
	bytes   int
	in, out bool // copy before the call, copy after it
}

// A staging carries out calls through the host engine, on copies of device memory.
type staging struct {
	seat  seat
	gpu   hardware
	queue *deviceQueue
	below *below
}

func (s *staging) carryOut(ctx context.Context, calls []started) error {
	onHost := slices.Clone(calls)
	copies, total := s.seat.copies(calls)
	err := s.queue.run(ctx, func() error {
		room, err := s.gpu.room(max(total, 1))
		if err != nil {
			return err
		}
		if err := substitute(onHost, copies, room); err != nil {
			return err
		}
		return s.toHost(copies)
	})
	if err != nil {
		return err
	}
	if err := s.queue.finish(ctx); err != nil {
		return err
	}
	if err := s.below.carryOut(ctx, onHost); err != nil {
		return err
	}
	if err := s.queue.run(ctx, func() error { return s.toDevice(copies) }); err != nil {
		return err
	}
	return s.queue.finish(ctx)
}

// toHost queues the copies of what the call reads.
func (s *staging) toHost(copies []*copied) error {
	for _, c := range copies {
		if c == nil || !c.in {
			continue
		}
		if err := s.gpu.toHost(c.offset, c.device, c.bytes); err != nil {
			return err
		}
	}
	return nil
}

// toDevice queues the copies of what the call wrote.
func (s *staging) toDevice(copies []*copied) error {
	for _, c := range copies {
		if c == nil || !c.out {
			continue
		}
		if err := s.gpu.toDevice(c.device, c.offset, c.bytes); err != nil {
			return err
		}
	}
	return nil
}

// copies returns the copies of each call's dst and src in turn, nil for vectors in host
// memory, and the bytes that they take.
func (p seat) copies(calls []started) (copies []*copied, total int) {
	copyOf := func(v collective.Vector) *copied {
		_, addr, ok := v.Device()
		if !ok {
			return nil
		}
		c := &copied{device: addr, offset: total, bytes: v.Bytes()}
		total += (c.bytes + stageAlign - 1) / stageAlign * stageAlign
		return c
	}
	for i := range calls {
		s := &calls[i]
		dst := copyOf(s.Dst)
		src := dst
		if !sameMemory(s.Dst, s.Src) {
			src = copyOf(s.Src)
		}
		if src != nil && p.reads(s) {
			src.in = true
		}
		if dst != nil && p.writes(s) {
			dst.out = true
		}
		copies = append(copies, dst, src)
	}
	return copies, total
}

// reads reports whether the call reads this rank's src.
func (p seat) reads(s *started) bool {
	c := &s.Header.Call
	if c.Kind == collective.KindSend {
		return int(c.Root) == p.rank
	}
	return c.Gives(p.rank)
}

// writes reports whether the call writes this rank's dst.
func (p seat) writes(s *started) bool {
	c := &s.Header.Call
	if c.Kind == collective.KindBroadcast || c.Kind == collective.KindSend {
		return int(c.Root) != p.rank
	}
	return c.Takes(p.rank)
}

// substitute replaces vectors in device memory by their copies.
func substitute(calls []started, copies []*copied, room []byte) error {
	for i := range calls {
		for j, v := range []*collective.Vector{&calls[i].Dst, &calls[i].Src} {
			c := copies[2*i+j]
			if c == nil {
				continue
			}
			host, err := collective.OfBytes(room[c.offset:c.offset+c.bytes], v.DType())
			if err != nil {
				return err
			}
			*v = host.At(v.Arena())
		}
	}
	return nil
}
