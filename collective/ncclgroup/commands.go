package ncclgroup

import (
	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/nccl"
)

// A started call was passed to Start, and Wait has not carried it out yet.
type started collective.Operation

func (s *started) vectors() [2]collective.Vector { return [2]collective.Vector{s.Dst, s.Src} }

func (s *started) kind() collective.Kind { return s.Header.Call.Kind }

// reduces reports whether the result depends on the order of folding.
func (s *started) reduces() bool { return s.Header.Call.Reduces() }

var dataTypes = map[collective.DType]nccl.DataType{
	collective.Float32: nccl.Float32, collective.Float64: nccl.Float64,
	collective.Float16: nccl.Float16, collective.BFloat16: nccl.Bfloat16,
	collective.Int32: nccl.Int32, collective.Int64: nccl.Int64, collective.Uint8: nccl.Uint8,
}

var redOps = map[collective.Op]nccl.RedOp{
	collective.Sum: nccl.Sum, collective.Mean: nccl.Avg,
	collective.Min: nccl.Min, collective.Max: nccl.Max, collective.Prod: nccl.Prod,
}

// whole reports whether a type is an integer type.
func whole(t collective.DType) bool {
	return t == collective.Int32 || t == collective.Int64 || t == collective.Uint8
}

// A seat is a rank and the number of ranks.
type seat struct{ rank, size int }

// failed returns an error that names this rank.
func (p seat) failed(err error) *collective.RankError {
	return &collective.RankError{Rank: p.rank, Phase: "failed", Err: err}
}

// commands returns the NCCL calls, in one NCCL group, that carry out a call on device
// vectors. There are none if the call moves nothing on this rank.
func (p seat) commands(s *started) []nccl.Command {
	c := &s.Header.Call
	b := builder{kind: dataTypes[c.DType], op: redOps[c.Op], width: c.DType.Size(), dst: at(s.Dst), src: at(s.Src)}
	root := int(c.Root)
	switch c.Kind {
	case collective.KindAllReduce:
		b.add(nccl.KindAllReduce, 0, b.src, b.dst, s.Src.Len())
	case collective.KindReduce:
		b.add(nccl.KindReduce, root, b.src, b.dst, s.Src.Len())
	case collective.KindBroadcast:
		b.add(nccl.KindBroadcast, root, b.src, b.dst, s.Dst.Len())
	case collective.KindAllGather:
		if s.Counts == nil {
			b.add(nccl.KindAllGather, 0, b.src, b.dst, s.Src.Len())
			break
		}
		b.pieces(s.Counts, func(r, lo, n int) { b.add(nccl.KindBroadcast, r, b.src, b.dst.at(lo, b.width), n) })
	case collective.KindReduceScatter:
		if s.Counts == nil {
			b.add(nccl.KindReduceScatter, 0, b.src, b.dst, s.Dst.Len())
			break
		}
		b.pieces(s.Counts, func(r, lo, n int) { b.add(nccl.KindReduce, r, b.src.at(lo, b.width), b.dst, n) })
	case collective.KindGather:
		b.send(root, 0, s.Src.Len())
		for r := 0; p.rank == root && r < p.size; r++ {
			b.recv(r, r*s.Src.Len(), s.Src.Len())
		}
	case collective.KindScatter:
		for r := 0; p.rank == root && r < p.size; r++ {
			b.send(r, r*s.Dst.Len(), s.Dst.Len())
		}
		b.recv(root, 0, s.Dst.Len())
	case collective.KindAllToAll:
		p.allToAll(&b, s)
	case collective.KindSend:
		if root == p.rank {
			b.send(int(c.Offset), 0, s.Src.Len())
		} else {
			b.recv(root, 0, s.Dst.Len())
		}
	}
	return b.commands
}

func (p seat) allToAll(b *builder, s *started) {
	sends, recvs := even(s.Src.Len(), p.size), even(s.Dst.Len(), p.size)
	if s.Counts != nil {
		sends, recvs = s.Counts[:p.size], s.Counts[p.size:]
	}
	b.pieces(sends, b.send)
	b.pieces(recvs, b.recv)
}

// even returns the counts of n elements in equal pieces.
func even(n, pieces int) []int {
	counts := make([]int, pieces)
	for i := range counts {
		counts[i] = n / pieces
	}
	return counts
}

// An address is one on the device.
type address uintptr

func at(v collective.Vector) address {
	_, addr, _ := v.Device()
	return address(addr)
}

// at returns the address some elements further.
func (a address) at(elements, width int) address { return a + address(elements*width) }

// A builder collects commands about one dst and one src.
type builder struct {
	kind     nccl.DataType
	op       nccl.RedOp
	width    int
	dst, src address
	commands []nccl.Command
}

// add adds a command, unless it moves nothing. Then its counterparts on other ranks move
// nothing either, and are left out there, too.
func (b *builder) add(k nccl.Kind, peer int, send, recv address, n int) {
	if n == 0 {
		return
	}
	b.commands = append(b.commands, nccl.Command{
		Kind: k, Type: b.kind, Op: b.op, Peer: int32(peer), Send: cuda.Ptr(send), Recv: cuda.Ptr(recv), Count: uint64(n),
	})
}

func (b *builder) send(to, lo, n int) { b.add(nccl.KindSend, to, b.src.at(lo, b.width), 0, n) }

func (b *builder) recv(from, lo, n int) { b.add(nccl.KindRecv, from, 0, b.dst.at(lo, b.width), n) }

// pieces calls fn with each rank's piece: where it begins, and its length.
func (b *builder) pieces(counts []int, fn func(r, lo, n int)) {
	lo := 0
	for r, n := range counts {
		fn(r, lo, n)
		lo += n
	}
}
