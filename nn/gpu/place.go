package gpu

import "github.com/ringtrain/ringtrain/cuda"

// Device is the GPU that the backend works on, for others to work there too, such
// as a collective.Engine. It belongs to the backend, and is closed with it.
func (b *Backend) Device() *cuda.Device { return b.device }

// Stream is where the backend queues its work. What others queue there comes in
// the order of the calls. It is the backend's, and destroyed by Close.
func (b *Backend) Stream() cuda.Stream { return b.stream }
