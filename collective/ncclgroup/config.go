package ncclgroup

import (
	"errors"
	"fmt"
	"time"

	"github.com/ringtrain/ringtrain/cuda"
)

// Use says whether an Engine uses NCCL.
type Use uint8

// The uses.
const (
	Auto Use = iota // if every rank can
	Must            // or New fails
	Off             // never: all calls are staged
)

// DefaultConnectTime is how long the ranks get to connect by NCCL, where Config
// does not say. The first of a process loads kernels, which takes seconds.
const DefaultConnectTime = 60 * time.Second

// Config says where an Engine works.
type Config struct {
	// Device is the replica's. Calls are queued on its thread, one after another,
	// so that communicators of one device never wait for each other. The Engine
	// does not close it.
	Device *cuda.Device
	// Stream is where they are queued. It is destroyed after the Engine is closed.
	Stream cuda.Stream
	// NCCL says whether to use it.
	NCCL Use
	// Breaking, if not nil, is called once if the engine breaks, before what NCCL is
	// doing on the stream ends with garbage: it keeps what is queued after that from
	// doing harm, as nn/gpu's Backend.Abort does. It may be called from any goroutine,
	// and neither waits nor calls the Engine.
	Breaking func()
	// ConnectTime is how long New may take; 0 is DefaultConnectTime.
	ConnectTime time.Duration
}

// ErrStuck says that NCCL had not finished a call when its time ran out, though
// all ranks had made it: the network that NCCL uses is cut, or too slow for the
// deadline.
var ErrStuck = errors.New("all ranks made the call, but NCCL has not finished it in time (NCCL_DEBUG=INFO says more)")

// ErrVersions says that ranks have different versions of NCCL.
var ErrVersions = errors.New("all ranks need the same version of NCCL")

func (c *Config) complete() error {
	if c.NCCL > Off {
		return fmt.Errorf("ncclgroup: use %d of NCCL: it must be Auto, Must or Off", c.NCCL)
	}
	if c.ConnectTime <= 0 {
		c.ConnectTime = DefaultConnectTime
	}
	return nil
}
