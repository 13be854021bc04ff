package cuda

import (
	"errors"
	"fmt"
)

// A Graph is a recording of what was queued on a stream, with the same
// addresses and arguments every time. It runs at the cost of one call.
type Graph struct {
	exec  uintptr
	nodes int
}

// Capture runs fn, which queues work on s, and records instead of doing it.
// Only this thread's calls are recorded, and only they are restricted: fn must
// not wait for s, allocate, or read results. What other streams do is recorded
// if they wait for an event of s, and then s must wait for them in the end.
func (s Stream) Capture(fn func() error) (*Graph, error) {
	if err := captureBegin(s.handle); err != nil {
		return nil, err
	}
	ended := false
	defer func() {
		if !ended { // fn panicked: leave the stream as it was
			if graph, err := captureEnd(s.handle); err == nil {
				_ = graphDestroy(graph)
			}
		}
	}()
	failed := fn()
	ended = true
	graph, err := captureEnd(s.handle)
	if failed != nil || err != nil {
		if err == nil {
			_ = graphDestroy(graph) // what failed comes first
		}
		return nil, errors.Join(failed, err)
	}
	exec, nodes, err := graphInstantiate(graph)
	if destroyed := graphDestroy(graph); err == nil && destroyed != nil {
		_ = execDestroy(exec)
		err = destroyed
	}
	if err != nil {
		return nil, fmt.Errorf("a graph of %d nodes: %w", nodes, err)
	}
	return &Graph{exec, nodes}, nil
}

// Capturing reports whether calls on the stream are being recorded.
func (s Stream) Capturing() (bool, error) { return capturing(s.handle) }

// Nodes is how many kernels, copies and other nodes the recording has.
func (g *Graph) Nodes() int { return g.nodes }

// Upload prepares the device for the first Launch, on s.
func (g *Graph) Upload(s Stream) error { return graphUpload(g.exec, s.handle) }

// Launch queues the whole recording on s. A graph runs once at a time: launches
// on several streams wait for each other.
func (g *Graph) Launch(s Stream) error { return graphLaunch(g.exec, s.handle) }

// Destroy frees the graph. An NCCL communicator that was captured is destroyed
// after all graphs that use it, or its end waits for ever.
func (g *Graph) Destroy() error { return execDestroy(g.exec) }
