package gpu

import "fmt"

// Calls counts how often a Backend has handed work to the driver since New. For small
// networks these calls dominate a step: each costs the host microseconds. Repeating a
// recording is one call, however much it contains.
type Calls struct {
	Kernels int // launches of a kernel, outside repetitions
	Others  int // matrix products, Zero, Queue, Aside and Join, outside repetitions
	Copies  int // between host and device
	Repeats int // of recordings
}

// Calls returns the counts.
func (b *Backend) Calls() Calls { return b.calls }

// Nodes returns the number of nodes in the graph of a recording. Each takes the device
// at least a few microseconds. The number is 0 if the recording has no graph. It is an
// error if there is no recording with this key.
func (b *Backend) Nodes(key string) (int, error) {
	r := b.recordings[key]
	switch {
	case r == nil:
		return 0, fmt.Errorf("gpu: there is no recording %q; Record it first", key)
	case r.graph == nil:
		return 0, nil
	}
	return r.graph.Nodes(), nil
}
