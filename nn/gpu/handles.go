package gpu

import "github.com/ringtrain/ringtrain/cuda"

// Device returns the backend's GPU, so that others can work on it, such as a
// collective.Engine. It belongs to the backend, and Close closes it.
func (b *Backend) Device() *cuda.Device { return b.device }

// Stream returns the stream on which the backend queues its work. Work that others queue
// there runs in call order. It belongs to the backend, and Close destroys it.
func (b *Backend) Stream() cuda.Stream { return b.stream }
