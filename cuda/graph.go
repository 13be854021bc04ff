package cuda

import (
	"errors"
	"fmt"
)

// A Graph is a recording of work on a stream. One call replays it, with the same addresses
// and arguments every time.
type Graph struct {
	exec  uintptr
	nodes int
}

// Capture calls fn, which queues work on s, and records that work instead of running it.
// fn must not wait for s, allocate memory or read results. Calls of other threads are
// neither recorded nor restricted. Work on another stream is recorded if that stream
// waits for an event of s; then s must wait for that stream before fn returns.
func (s Stream) Capture(fn func() error) (*Graph, error) {
	if err := captureBegin(s.handle); err != nil {
		return nil, err
	}
	ended := false
	defer func() {
		if !ended { // fn panicked: end the capture, so that the stream still works
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
			_ = graphDestroy(graph) // failed is the cause
		}
		return nil, errors.Join(failed, err)
	}
	exec, nodes, err := graphInstantiate(graph)
	if destroyed := graphDestroy(graph); err == nil && destroyed != nil {
		_ = execDestroy(exec)
		err = destroyed
	}
	if err != nil {
		return nil, fmt.Errorf("graph of %d nodes: %w", nodes, err)
	}
	return &Graph{exec, nodes}, nil
}

// Capturing reports whether the stream is recording.
func (s Stream) Capturing() (bool, error) { return capturing(s.handle) }

// Nodes returns the number of kernels, copies and other nodes of the recording.
func (g *Graph) Nodes() int { return g.nodes }

// Upload prepares the device for the first Launch, on s.
func (g *Graph) Upload(s Stream) error { return graphUpload(g.exec, s.handle) }

// Launch queues the whole recording on s. Launches of the same graph on several streams
// run one after the other.
func (g *Graph) Launch(s Stream) error { return graphLaunch(g.exec, s.handle) }

// Destroy frees the graph. Destroy an NCCL communicator after all graphs that captured it,
// because its own end waits for them.
func (g *Graph) Destroy() error { return execDestroy(g.exec) }
