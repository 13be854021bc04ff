//go:build linux && (amd64 || arm64) && !static

package emulator

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Modes of capture.
const (
	global      = 0
	threadLocal = 1
	relaxed     = 2
)

// capturing is a device and a stream with a thread-local capture.
type capturing struct {
	*Device
	t            *testing.T
	s, x, pinned uintptr
}

func beginCapture(t *testing.T, d *Device) *capturing {
	c := &capturing{Device: d, t: t, x: up(t, d, 1)}
	require.Zero(t, d.Call("cuStreamCreate", &c.s, 1))
	require.Zero(t, d.Call("cuMemHostAlloc", &c.pinned, 4, 0))
	require.Zero(t, d.Call("cuStreamBeginCapture_v2", c.s, threadLocal))
	return c
}

func (c *capturing) add(v float32) {
	c.t.Helper()
	require.NoError(c.t, c.Launch(c.s, "add", threads(1), threads(1), c.x, v))
}

// end ends the capture and returns the graph.
func (c *capturing) end(want int) (graph uintptr) {
	c.t.Helper()
	require.Equal(c.t, want, c.Call("cuStreamEndCapture", c.s, &graph))
	return graph
}

func TestGraphRepeats(t *testing.T) {
	c := beginCapture(t, device(t))
	c.add(2)
	require.Zero(t, c.Call("cuMemcpyDtoHAsync_v2", c.pinned, c.x, 4, c.s))
	c.add(3)
	graph := c.end(0)
	require.Equal(t, []float32{1}, down(t, c.Device, c.x, 1), "capture must not run")

	var nodes, exec uintptr
	require.Zero(t, c.Call("cuGraphGetNodes", graph, nil, &nodes))
	require.EqualValues(t, 3, nodes)
	require.Zero(t, c.Call("cuGraphInstantiateWithFlags", &exec, graph, 0))
	require.Zero(t, c.Call("cuGraphDestroy", graph))
	require.Zero(t, c.Call("cuGraphUpload", exec, c.s))
	for range 2 {
		require.Zero(t, c.Call("cuGraphLaunch", exec, c.s))
	}
	require.Zero(t, c.Call("cuStreamSynchronize", c.s))
	require.Equal(t, []float32{11}, down(t, c.Device, c.x, 1))
	require.Equal(t, []float32{8}, down(t, c.Device, c.pinned, 1))
	require.Zero(t, c.Call("cuGraphExecDestroy", exec))
	require.Equal(t, invalidValue, c.Call("cuGraphLaunch", exec, c.s))
	require.Equal(t, invalidValue, c.Call("cuGraphDestroy", graph))
}

// Calls that CUDA forbids in a capture return CUDA's error and invalidate the capture.
func TestCaptureRules(t *testing.T) {
	for _, c := range captureRules {
		t.Run(c.name, func(t *testing.T) { c.check(t, beginCapture(t, device(t))) })
	}
}

type captureRule struct {
	name    string
	call    func(c *capturing) int
	want    int
	atEnd   int
	outside bool // the rule is about ending the capture
}

func (r captureRule) check(t *testing.T, c *capturing) {
	c.add(1)
	require.Equal(t, r.want, r.call(c))
	var status int32
	if r.atEnd == captureInvalidated {
		require.Zero(t, c.Call("cuStreamIsCapturing", c.s, &status))
		require.EqualValues(t, 2, status)
		require.Equal(t, captureInvalidated, c.Launch(c.s, "add", threads(1), threads(1), c.x, float32(1)).(*Error).Code)
	}
	if r.outside {
		return
	}
	c.end(r.atEnd)
	require.NoError(t, c.Wait(), "the context is not harmed")
}

var captureRules = []captureRule{
	{name: "wait for the stream", want: captureUnsupported, atEnd: captureInvalidated,
		call: func(c *capturing) int { return c.Call("cuStreamSynchronize", c.s) }},
	{name: "ask the stream", want: captureUnsupported, atEnd: captureInvalidated,
		call: func(c *capturing) int { return c.Call("cuStreamQuery", c.s) }},
	{name: "wait for the context", want: captureUnsupported, atEnd: captureInvalidated,
		call: func(c *capturing) int { return c.Call("cuCtxSynchronize") }},
	{name: "allocate", want: captureUnsupported, atEnd: captureInvalidated,
		call: func(c *capturing) int { return c.Call("cuMemAlloc_v2", new(uintptr), 4) }},
	{name: "allocate pinned", want: captureUnsupported, atEnd: captureInvalidated,
		call: func(c *capturing) int { return c.Call("cuMemHostAlloc", new(uintptr), 4, 0) }},
	{name: "free", want: captureUnsupported, atEnd: captureInvalidated,
		call: func(c *capturing) int { return c.Call("cuMemFree_v2", c.x) }},
	{name: "copy synchronously", want: captureUnsupported, atEnd: captureInvalidated,
		call: func(c *capturing) int { return c.Call("cuMemcpyHtoD_v2", c.x, new(float32), 4) }},
	{name: "copy from memory that is not pinned", want: captureUnsupported, atEnd: captureInvalidated,
		call: func(c *capturing) int { return c.Call("cuMemcpyHtoDAsync_v2", c.x, new(float32), 4, c.s) }},
	{name: "unload a module", want: captureUnsupported, atEnd: captureInvalidated,
		call: func(c *capturing) int { return c.Call("cuModuleUnload", c.module) }},
	{name: "begin twice", want: illegalState,
		call: func(c *capturing) int { return c.Call("cuStreamBeginCapture_v2", c.s, threadLocal) }},
	{name: "the legacy stream", want: captureUnsupported,
		call: func(c *capturing) int { return c.Call("cuStreamBeginCapture_v2", nil, threadLocal) }},
	{name: "wait for an event from outside", want: captureIsolation, atEnd: captureInvalidated,
		call: func(c *capturing) int {
			var event, other uintptr
			c.Call("cuEventCreate", &event, 2)
			c.Call("cuStreamCreate", &other, 1)
			c.Call("cuEventRecord", event, other)
			return c.Call("cuStreamWaitEvent", c.s, event, 0)
		}},
	{name: "ask a captured event", want: capturedEvent, atEnd: captureInvalidated,
		call: func(c *capturing) int {
			var event uintptr
			c.Call("cuEventCreate", &event, 2)
			c.Call("cuEventRecord", event, c.s)
			return c.Call("cuEventQuery", event)
		}},
	{name: "a stream that is not joined again", want: 0, atEnd: captureUnjoined,
		call: func(c *capturing) int { return c.fork(false) }},
	{name: "a stream that is joined", want: 0, atEnd: 0,
		call: func(c *capturing) int { return c.fork(true) }},
	{name: "end in a stream that joined", want: captureUnmatched, outside: true,
		call: func(c *capturing) int {
			var event, other uintptr
			c.Call("cuEventCreate", &event, 2)
			c.Call("cuStreamCreate", &other, 1)
			c.Call("cuEventRecord", event, c.s)
			c.Call("cuStreamWaitEvent", other, event, 0)
			return c.Call("cuStreamEndCapture", other, new(uintptr))
		}},
	{name: "end in another thread", want: captureWrongThread, outside: true,
		call: func(c *capturing) int {
			code := make(chan int)
			go func() {
				defer c.Bind()()
				code <- c.Call("cuStreamEndCapture", c.s, new(uintptr))
			}()
			return <-code
		}},
	{name: "another thread may allocate", want: 0, atEnd: 0,
		call: func(c *capturing) int {
			code := make(chan int)
			go func() {
				defer c.Bind()()
				code <- c.Call("cuMemAlloc_v2", new(uintptr), 4)
			}()
			return <-code
		}},
	{name: "no capture", want: illegalState, outside: true,
		call: func(c *capturing) int {
			c.end(0)
			return c.Call("cuStreamEndCapture", c.s, new(uintptr))
		}},
}

// fork captures work in a second stream. The first stream waits for it only if join is set.
func (c *capturing) fork(join bool) int {
	var event, other uintptr
	c.Call("cuEventCreate", &event, 2)
	c.Call("cuStreamCreate", &other, 1)
	c.Call("cuEventRecord", event, c.s)
	if code := c.Call("cuStreamWaitEvent", other, event, 0); code != Success {
		return code
	}
	if err := c.Launch(other, "add", threads(1), threads(1), c.x, float32(1)); err != nil {
		return err.(*Error).Code
	}
	if !join {
		return Success
	}
	c.Call("cuEventRecord", event, other)
	return c.Call("cuStreamWaitEvent", c.s, event, 0)
}

// A global capture forbids allocations on other threads. The capture of a blocking stream forbids
// use of the legacy stream.
func TestCaptureOfOthers(t *testing.T) {
	d := device(t)
	x := up(t, d, 1)
	var s uintptr
	require.Zero(t, d.Call("cuStreamCreate", &s, 0))
	begin := func(mode int) { require.Zero(t, d.Call("cuStreamBeginCapture_v2", s, mode)) }
	elsewhere := func() int {
		code := make(chan int)
		go func() {
			defer d.Bind()()
			code <- d.Call("cuMemAlloc_v2", new(uintptr), 4)
		}()
		return <-code
	}
	begin(global)
	require.Equal(t, captureUnsupported, elsewhere())
	require.Equal(t, captureInvalidated, d.Call("cuStreamEndCapture", s, new(uintptr)))
	begin(relaxed)
	require.Zero(t, elsewhere())
	require.Zero(t, d.Call("cuMemAlloc_v2", new(uintptr), 4), "its own thread too")
	require.Equal(t, captureImplicit, d.Launch(0, "add", threads(1), threads(1), x, float32(1)).(*Error).Code)
	require.Equal(t, captureInvalidated, d.Call("cuStreamEndCapture", s, new(uintptr)))
}
