package bench

import (
	"context"
	"maps"
	"slices"

	"github.com/ringtrain/ringtrain/collective"
)

// An operation describes one collective operation to the bench.
type operation struct {
	reduces, rooted bool
	onlyRoot        bool // only the root gets a result
	least           int  // minimum number of ranks

	// in and out return how many elements a rank gives and gets per element of count,
	// in a group of n.
	in, out func(n int) int
	// factor is busbw divided by algbw.
	factor func(n int) float64
	// want returns the correct element j of a part of rank's result, if it gets one.
	want func(o *oracle, rank, part, j int) int64
	// inside returns input and result in one buffer. It is nil if the operation does
	// not work in place.
	inside func(rank, count int, buffer collective.Vector) (dst, src collective.Vector)
	// call makes one call. It must not change the input unless that is part of the result.
	call func(ctx context.Context, g *collective.Group, s *Spec, v *operands) error
}

// operands are the result and the input of a call. They are passed by pointer, because
// copying them would be part of the time of a call.
type operands struct {
	dst, src collective.Vector
	apart    bool // they are not the same memory
}

// Operations returns the names of the operations that can be measured.
func Operations() []string { return slices.Sorted(maps.Keys(operations)) }

// operations must not change.
var operations = map[string]*operation{
	"allreduce": {
		reduces: true, in: one, out: one,
		factor: func(n int) float64 { return 2 * float64(n-1) / float64(n) },
		want:   func(o *oracle, _, _, j int) int64 { return o.reduced(j) },
		inside: whole,
		call: func(ctx context.Context, g *collective.Group, s *Spec, v *operands) error {
			if err := s.fill(v); err != nil {
				return err
			}
			return g.AllReduce(ctx, v.dst, s.Reduction)
		},
	},
	"allgather": {
		in: one, out: all, factor: allButOwn,
		want:   func(o *oracle, _, part, j int) int64 { return o.input(part, j) },
		inside: fromOwnPart,
		call: func(ctx context.Context, g *collective.Group, _ *Spec, v *operands) error {
			return g.AllGather(ctx, v.dst, v.src)
		},
	},
	"broadcast": {
		rooted: true, in: one, out: one,
		factor: func(int) float64 { return 1 },
		want:   func(o *oracle, _, _, j int) int64 { return o.input(o.root, j) },
		inside: whole,
		call: func(ctx context.Context, g *collective.Group, s *Spec, v *operands) error {
			if g.Rank() == s.Root {
				if err := s.fill(v); err != nil {
					return err
				}
			}
			return g.Broadcast(ctx, v.dst, s.Root)
		},
	},
	"reducescatter": {
		reduces: true, in: all, out: one, factor: allButOwn,
		want:   func(o *oracle, rank, _, j int) int64 { return o.reduced(rank*o.count + j) },
		inside: intoOwnPart,
		call: func(ctx context.Context, g *collective.Group, s *Spec, v *operands) error {
			return g.ReduceScatter(ctx, v.dst, v.src, s.Reduction)
		},
	},
	"reduce": {
		reduces: true, rooted: true, onlyRoot: true, in: one, out: one,
		factor: func(int) float64 { return 1 },
		want:   func(o *oracle, _, _, j int) int64 { return o.reduced(j) },
		inside: whole,
		call: func(ctx context.Context, g *collective.Group, s *Spec, v *operands) error {
			return g.Reduce(ctx, v.dst, v.src, s.Reduction, s.Root)
		},
	},
	"gather": {
		rooted: true, onlyRoot: true, in: one, out: all, factor: allButOwn,
		want:   func(o *oracle, _, part, j int) int64 { return o.input(part, j) },
		inside: fromOwnPart,
		call: func(ctx context.Context, g *collective.Group, s *Spec, v *operands) error {
			return g.Gather(ctx, v.dst, v.src, s.Root)
		},
	},
	"scatter": {
		rooted: true, in: all, out: one, factor: allButOwn,
		want:   func(o *oracle, rank, _, j int) int64 { return o.input(o.root, rank*o.count+j) },
		inside: intoOwnPart,
		call: func(ctx context.Context, g *collective.Group, s *Spec, v *operands) error {
			return g.Scatter(ctx, v.dst, v.src, s.Root)
		},
	},
	"alltoall": {
		in: all, out: all, factor: allButOwn,
		want: func(o *oracle, rank, part, j int) int64 { return o.input(part, rank*o.count+j) },
		call: func(ctx context.Context, g *collective.Group, _ *Spec, v *operands) error {
			return g.AllToAll(ctx, v.dst, v.src)
		},
	},
	"sendrecv": { // round the ring
		least: 2, in: one, out: one,
		factor: func(int) float64 { return 1 },
		want:   func(o *oracle, rank, _, j int) int64 { return o.input((rank+o.ranks-1)%o.ranks, j) },
		call: func(ctx context.Context, g *collective.Group, _ *Spec, v *operands) error {
			up, down := (g.Rank()+1)%g.Size(), (g.Rank()+g.Size()-1)%g.Size()
			return g.SendRecv(ctx, v.dst, down, v.src, up)
		},
	},
}

func one(int) int   { return 1 }
func all(n int) int { return n }

func allButOwn(n int) float64 { return float64(n-1) / float64(n) }

// The ways to make a call in one buffer: the whole is both result and input, or the rank's
// part is the input, or the result.

func whole(_, _ int, buffer collective.Vector) (dst, src collective.Vector) { return buffer, buffer }

func fromOwnPart(rank, count int, buffer collective.Vector) (dst, src collective.Vector) {
	return buffer, ownPart(rank, count, buffer)
}

func intoOwnPart(rank, count int, buffer collective.Vector) (dst, src collective.Vector) {
	return ownPart(rank, count, buffer), buffer
}

func ownPart(rank, count int, buffer collective.Vector) collective.Vector {
	return buffer.Slice(rank*count, (rank+1)*count)
}

// host returns the memory of a vector that allocate made.
func host(v collective.Vector) []byte {
	b, _ := v.Host()
	return b
}
