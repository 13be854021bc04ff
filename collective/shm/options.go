package shm

import (
	"errors"
	"log/slog"

	"github.com/ringtrain/ringtrain/collective"
)

// Under is the transport of a View that a Transport of this package lies over:
// that of package tcp.
type Under interface {
	collective.Transport
	// Failed is closed when the transport is broken, and then Err says by what.
	Failed() <-chan struct{}
	Err() error
	// Left reports whether a rank has said goodbye.
	Left(rank int) bool
	// Begun tells the peers, with the next heartbeat, that this rank has begun
	// the call of h. Behind is the rank that has begun the fewest calls, if fewer
	// than seq.
	Begun(h *collective.Header)
	Behind(seq uint64) (rank int, ok bool)
	// Streams returns the number of connections that carry a message of so many
	// bytes.
	Streams(bytes int) int
}

// ErrNotShared is what errors.Is finds when memory must be shared and is not.
var ErrNotShared = errors.New("shm: memory is not shared")

// Options change how a host's ranks share memory. The zero value is right
// where there is no reason for another.
type Options struct {
	Off  bool         // this rank does not share memory, and so no rank of its host does
	Must bool         // Join fails where memory cannot be shared, see ErrNotShared
	Log  *slog.Logger // told why memory is not shared; nil is silent

	// Arenas are memory of this process that the ranks of its host read and write
	// during an AllReduce of it; may be nil.
	Arenas *Arenas

	reserve func(fd int, size int64) error // makes room in the file; nil is that of Arenas
	cannot  error                          // why this rank cannot share memory
}

var errOff = errors.New("shared memory is turned off")
