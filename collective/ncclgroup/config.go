package ncclgroup

import (
	"errors"
	"fmt"
	"time"

	"github.com/ringtrain/ringtrain/cuda"
)

// Use says whether an Engine uses NCCL.
type Use uint8

// The values of Use.
const (
	Auto Use = iota // use NCCL if every rank can
	Must            // use NCCL, or New fails
	Off             // stage all calls
)

// DefaultConnectTime is the default of Config.ConnectTime. The first connection of a
// process loads kernels, which takes seconds.
const DefaultConnectTime = 60 * time.Second

// Config configures an Engine.
type Config struct {
	// Device is the replica's device. The Engine queues calls on its thread, one after the
	// other, so that communicators of one device never wait for each other. The caller
	// closes it.
	Device *cuda.Device
	// Stream is where calls are queued. The caller destroys it after closing the Engine.
	Stream cuda.Stream
	// NCCL says whether to use NCCL.
	NCCL Use
	// Breaking, if not nil, is called once if the engine breaks, before NCCL's work on the
	// stream ends with garbage. It keeps work queued behind that from doing harm, as
	// nn/gpu's Backend.Abort does. On another rank that work may end with garbage before
	// Breaking is called there; see the package comment. Any goroutine may call it. It must
	// not block or call the Engine.
	Breaking func()
	// ConnectTime bounds New; 0 is DefaultConnectTime.
	ConnectTime time.Duration
}

// ErrStuck means that NCCL did not finish a call in time although all ranks made it: the
// network that NCCL uses is down, or too slow for the deadline.
var ErrStuck = errors.New("all ranks made the call, but NCCL did not finish it in time: set NCCL_DEBUG=INFO to see why")

// ErrVersions means that ranks have different versions of NCCL.
var ErrVersions = errors.New("all ranks need the same version of NCCL: install one version everywhere, or turn NCCL off with --nccl off")

func (c *Config) complete() error {
	if c.NCCL > Off {
		return fmt.Errorf("ncclgroup: Config.NCCL must be Auto, Must or Off, not %d", c.NCCL)
	}
	if c.ConnectTime <= 0 {
		c.ConnectTime = DefaultConnectTime
	}
	return nil
}
