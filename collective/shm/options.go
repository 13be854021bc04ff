package shm

import (
	"errors"
	"log/slog"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/calibration"
)

// Under is the transport that a Transport of this package lies over: that of
// package tcp.
type Under interface {
	collective.Transport
	// Failed is closed when the transport breaks. Err then returns the cause.
	Failed() <-chan struct{}
	Err() error
	// Left reports whether a rank has said goodbye.
	Left(rank int) bool
	// Begun tells the peers, with the next heartbeat, that this rank has begun
	// the call of h. Behind is that of collective.Abilities.
	Begun(h *collective.Header)
	Behind(seq uint64) (rank int, ok bool)
	// Streams returns the number of connections that carry a message of the
	// given number of bytes.
	Streams(bytes int) int
}

// ErrNotShared is returned when memory must be shared but is not.
var ErrNotShared = errors.New("shm: memory is not shared")

// Options configure how a host's ranks share memory. The zero value suits most
// uses.
type Options struct {
	Off  bool         // this rank does not share memory, so no rank of its host does
	Must bool         // Join fails with ErrNotShared if memory cannot be shared
	Log  *slog.Logger // records why memory is not shared; nil for no log

	// Arenas are memory of this process that the ranks of its host read and
	// write during an AllReduce. It may be nil.
	Arenas *Arenas

	// Calibration says how the ranks of this host choose what depends on the processor
	// and the kernel. That of the lowest rank counts. Calibrated, which may be nil, gets
	// the result before Join returns.
	Calibration calibration.Policy
	Calibrated  func(calibration.Report)

	reserve func(fd int, size int64) error // allocates the file's pages; nil means the function of that name
	cannot  error                          // why this rank cannot share memory
}

var errOff = errors.New("shared memory is turned off")
