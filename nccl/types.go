package nccl

import "github.com/ringtrain/ringtrain/cuda"

// UniqueID is ncclUniqueId: what the ranks of a communicator have in common. It
// says where one of them listens, so it is shown only to those who may join.
type UniqueID [128]byte

// DataType is ncclDataType_t.
type DataType int32

// NCCL's element types.
const (
	Int8 DataType = iota
	Uint8
	Int32
	Uint32
	Int64
	Uint64
	Float16
	Float32
	Float64
	Bfloat16
)

// RedOp is ncclRedOp_t.
type RedOp int32

// NCCL's reductions. Max and Min of floats leave a NaN out where another rank
// has a number. Avg multiplies by 1/size first, and of integers it rounds.
const (
	Sum RedOp = iota
	Prod
	Max
	Min
	Avg
)

// Kind is which function of NCCL a Command calls.
type Kind int32

// The functions that move data. The numbers are ours; the C code has the same.
const (
	KindAllReduce Kind = iota
	KindReduce
	KindBroadcast
	KindAllGather
	KindReduceScatter
	KindSend
	KindRecv
)

// String is the function's name.
func (k Kind) String() string {
	names := [...]string{"ncclAllReduce", "ncclReduce", "ncclBroadcast", "ncclAllGather", "ncclReduceScatter", "ncclSend", "ncclRecv"}
	if k >= 0 && int(k) < len(names) {
		return names[k]
	}
	return "nccl"
}

// A Command is a call of a function that moves data, for Group. It is laid out as
// rt_nccl_command in nccl_gpu.h.
type Command struct {
	Kind  Kind
	Type  DataType
	Op    RedOp // reductions only
	Peer  int32 // the root, or the other rank of Send and Recv
	Send  cuda.Ptr
	Recv  cuda.Ptr
	Count uint64 // elements, counted as the function does
}
