package paramserver

import (
	"math"
)

// The tags of messages. A server answers every request with a message of the same tag.
const (
	tagPush   = uint32(iota + 1) // request: a gradient; answer: values
	tagState                     // answer: values and slots
	tagFinish                    // the worker sends no more gradients; answer, when no worker does: what became of them
	tagEnd                       // answer, when all workers have sent it: none, the server ends
	tagCount
	tagLeft                     // a rank has ended its messages; not a message itself
	tagAnswer = uint32(1 << 16) // is added to the tag of an answer
)

// A header is the beginning of every message.
type header struct {
	number    int     // of the worker's request, also in its answer
	version   int     // request: of the values behind the gradient; answer: of the values that follow
	rows      int     // request: behind the gradient; answer: behind all gradients applied so far
	loss      float64 // summed over rows
	undivided bool    // request: the sum of all gradients of an update is not divided by their rows
	stop      bool    // request: end the training; answer: it has ended, because a worker asked
}

// headerLen is the length of a header in elements: 64 bytes, so that the elements after it are
// aligned like an arena.
const headerLen = 16

func (h header) put(b []float32) {
	clear(b[:headerLen])
	for i, x := range []uint64{uint64(h.number), uint64(h.version), uint64(h.rows), math.Float64bits(h.loss), bit(h.undivided), bit(h.stop)} {
		putWord(b[2*i:], x)
	}
}

func getHeader(b []float32) header {
	return header{
		number: int(getWord(b)), version: int(getWord(b[2:])), rows: int(getWord(b[4:])), loss: math.Float64frombits(getWord(b[6:])),
		undivided: getWord(b[8:]) != 0, stop: getWord(b[10:]) != 0,
	}
}

func bit(x bool) uint64 {
	if x {
		return 1
	}
	return 0
}

// putWord stores the bits of x in two elements.
func putWord(b []float32, x uint64) {
	b[0], b[1] = math.Float32frombits(uint32(x)), math.Float32frombits(uint32(x>>32))
}

func getWord(b []float32) uint64 {
	return uint64(math.Float32bits(b[0])) | uint64(math.Float32bits(b[1]))<<32
}
