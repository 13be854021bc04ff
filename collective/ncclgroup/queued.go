package ncclgroup

import (
	"context"
	"errors"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/cuda"
)

// errStream says that a call was to be put on a stream that is not the engine's.
var errStream = errors.New("ncclgroup: queueing on another stream than Config.Stream; give the engine the stream that the device's work is queued on")

// Queued is [Engine.Queue] as a function of the stream, for who queues work in an
// order of its own and repeats it, as nn/gpu's Backend.Queue does.
func (e *Engine) Queued(ctx context.Context, c collective.Call, dst, src collective.Vector) func(cuda.Stream) error {
	return func(s cuda.Stream) error {
		if s != e.config.Stream {
			return errStream
		}
		return e.Queue(ctx, c, dst, src)
	}
}
