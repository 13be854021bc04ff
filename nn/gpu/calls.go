package gpu

import "fmt"

// Calls counts how often a Backend has handed work to the driver since New. What
// a small network takes on a GPU is in the number of calls: each costs the host
// microseconds, and a repetition is one however much it does.
type Calls struct {
	Kernels int // launches of a kernel, outside repetitions
	Others  int // matrix products, memory set to zero, what Queue and Aside were given, and Join, outside repetitions
	Copies  int // between host and device
	Repeats int // of recordings
}

// Calls returns the counts.
func (b *Backend) Calls() Calls { return b.calls }

// Nodes returns how many kernels, products and others the recording of a key has
// as a graph, each a few microseconds of the device at least; 0 if it is repeated
// without one. No such recording is an error.
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
