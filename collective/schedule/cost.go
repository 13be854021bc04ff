package schedule

import (
	"math/bits"
	"time"
)

// A Cost is the cost of messages on one kind of link, in nanoseconds: Latency
// per message, PerByte per byte, and Fold per byte that is combined with
// another. The model is that of Hockney (1994), with folding added. It assumes
// a rank that does one thing at a time, so it is coarse where ranks share
// cores. A Table holds measurements instead.
type Cost struct{ Latency, PerByte, Fold float64 }

// The kinds of links. Fold was measured on one core of a 2-core Xeon 6.
//
// Loopback and SharedMemory are the model solved for the medians of an
// AllReduce between two processes on that machine, of 4 bytes and of 4 MiB:
// 4.92 and 1155 us over loopback, .90 and 563 us over shared memory.
//
// InProcess is the same for messages between ranks of one process, measured by
// bench collective while the machine had other work: 7.9 and 1700 us.
// Reductions without messages take less.
//
// Network is not measured. It has the specified bandwidth of 10 Gbit Ethernet
// and a latency that two hosts' network stacks may take. A Table has the values
// of the machines where it was made.
var (
	InProcess    = Cost{Latency: 7_900, PerByte: .357, Fold: .0375}
	SharedMemory = Cost{Latency: 450, PerByte: .115, Fold: .0375}
	Loopback     = Cost{Latency: 4_920, PerByte: .238, Fold: .0375}
	Network      = Cost{Latency: 25_000, PerByte: .8, Fold: .0375}
)

// Each product below is converted explicitly. Otherwise a compiler may fuse it with a sum,
// and processors whose costs differ in the last bit could choose different plans.

// messages returns the time for bytes in messages of at most segment bytes, in
// nanoseconds.
func (c Cost) messages(bytes, segment float64) float64 {
	n := 1.
	if segment > 0 && bytes > segment {
		n = bytes / segment
	}
	return float64(n*c.Latency) + float64(bytes*c.PerByte)
}

// Predict returns how long an AllReduce of count elements of width bytes takes by a plan:
// according to the model, corrected by what the group's own calls took.
func (s *Situation) Predict(p Plan, count, width int) time.Duration {
	bytes := float64(count * width)
	predicted := s.nanoseconds(p, bytes, float64(p.Segment*width))
	timed := *s // the calls were timed with the plan of ring order
	timed.Any, timed.Force, timed.Table = false, 0, nil
	if took, ok := s.expect(bytes); ok {
		q := timed.Plan(count, width, true)
		predicted *= took / timed.nanoseconds(q, bytes, float64(q.Segment*width))
	}
	return time.Duration(predicted)
}

// link is the cost of the links that most messages take.
func (s *Situation) link() Cost {
	if s.OneHost() {
		return s.Near
	}
	return s.Far
}

func (s *Situation) nanoseconds(p Plan, bytes, segment float64) float64 {
	size := float64(len(s.Hosts))
	if size < 2 {
		return 0
	}
	link := s.link()
	share := bytes / size
	folds := float64((size - 1) * share * link.Fold)
	switch p.Method {
	case OneShot:
		return (size - 1) * (link.messages(bytes, 0) + float64(bytes*link.Fold))
	case Bruck:
		return float64(float64(Rounds(len(s.Hosts)))*link.Latency) + float64((size-1)*bytes*(link.PerByte+link.Fold))
	case Collected:
		depth := float64(bits.Len(uint(len(s.Hosts) - 1)))
		return link.Latency + float64(2*depth*link.Latency) + float64((size-1)*bytes*(link.PerByte+link.Fold)) + float64(depth*bytes*link.PerByte)
	case Shared:
		return float64(2*link.Latency) + float64(2*(size-1)*share*link.PerByte) + folds
	case Halving:
		return link.Latency + link.halving(len(s.Hosts), bytes, segment)
	case Tree:
		return link.Latency + link.tree(len(s.Hosts), bytes, segment)
	case Hierarchical:
		return link.Latency + s.hierarchical(bytes, segment)
	}
	return float64(2*(size-1)*link.messages(share, segment)) + folds // Ring and Direct
}

func (c Cost) halving(size int, bytes, segment float64) float64 {
	rounds := bits.Len(uint(size)) - 1
	t, half := 0., bytes
	for range rounds {
		half /= 2
		t += float64(2*c.messages(half, segment)) + float64(half*c.Fold)
	}
	if size != 1<<rounds {
		t += float64(2*c.messages(bytes, segment)) + float64(bytes*c.Fold)
	}
	return t
}

func (c Cost) tree(size int, bytes, segment float64) float64 {
	depth, half := float64(bits.Len(uint(size-1))), bytes/2
	fill := float64(2 * depth * c.messages(min(half, segment), 0))
	through := 4. // halves, on a rank with two children
	if size == 2 {
		through = 2
	}
	return fill + float64(through*c.messages(half, segment)) + float64(bytes*c.Fold)
}

func (s *Situation) hierarchical(bytes, segment float64) float64 {
	l := localityOf(0, s.Hosts)
	inside, hosts, piece := float64(l.locals-1), float64(l.hosts), bytes/float64(l.owners)
	near := float64(2*s.Near.messages(piece, segment)) + float64(piece*s.Near.Fold)
	return float64(inside*near) + float64(2*(hosts-1)*s.Far.messages(piece/hosts, segment)) + float64(piece*s.Far.Fold)
}
