package nccl

import "github.com/ringtrain/ringtrain/cuda"

// UniqueID is ncclUniqueId, which identifies a communicator. It contains the address on which
// one rank listens, so show it only to processes that may join.
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

// NCCL's reductions. Max and Min of floats ignore a NaN if another rank has a number. Avg
// multiplies floats by 1/size before it sums. For integers it rounds.
const (
	Sum RedOp = iota
	Prod
	Max
	Min
	Avg
)

// Kind selects the function of NCCL that a Command calls.
type Kind int32

// The functions that move data. The numbers are our own, and nccl_gpu.c has the same.
const (
	KindAllReduce Kind = iota
	KindReduce
	KindBroadcast
	KindAllGather
	KindReduceScatter
	KindSend
	KindRecv
)

// String returns the function's name.
func (k Kind) String() string {
	names := [...]string{"ncclAllReduce", "ncclReduce", "ncclBroadcast", "ncclAllGather", "ncclReduceScatter", "ncclSend", "ncclRecv"}
	if k >= 0 && int(k) < len(names) {
		return names[k]
	}
	return "nccl"
}

// A Command is a call of a function that moves data, for Group. It has the layout of
// rt_nccl_command in nccl_gpu.h.
type Command struct {
	Kind  Kind
	Type  DataType
	Op    RedOp // reductions only
	Peer  int32 // the root, or the other rank of Send and Recv
	Send  cuda.Ptr
	Recv  cuda.Ptr
	Count uint64 // elements, as the function counts them
}
