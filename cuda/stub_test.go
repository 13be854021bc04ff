//go:build !(gpu && cgo && linux)

package cuda

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// Without the build tag, cgo or Linux, every error says in one line what is missing.
func TestUnavailable(t *testing.T) {
	err := Available()
	require.ErrorIs(t, err, ErrUnavailable)
	require.NotContains(t, err.Error(), "\n")
	want := "without -tags gpu"
	switch {
	case runtime.GOOS != "linux":
		want = "on Linux only"
	case untagged == "":
		want = "but without cgo"
	}
	require.ErrorContains(t, err, want)

	_, opened := Open(0)
	_, listed := Devices()
	_, loaded := NCCL.Open(nil)
	_, compiled := Compile(Cache{}, Source{}, "sm_90")
	for _, other := range []error{opened, listed, loaded, compiled} {
		require.EqualError(t, other, err.Error())
	}
	r := Inspect()
	require.Equal(t, err.Error(), r.Problem)
	require.Empty(t, r.Devices)
	require.Empty(t, r.Libraries)
}

// Every stub fails.
func TestStubsFail(t *testing.T) {
	var d Device
	var g Graph
	var p Pinned
	_, alloc := d.Alloc(1)
	_, stream := d.NewStream()
	_, event := d.NewEvent(true)
	_, pinned := d.AllocPinned(1, true)
	_, load := d.Load(nil)
	_, function := Module{}.Function("f")
	_, usage := Function{}.Usage()
	_, capture := Stream{}.Capture(func() error { return nil })
	_, asked := Stream{}.Capturing()
	_, done := Stream{}.Done()
	_, elapsed := Event{}.Since(Event{})
	_, _, info := d.MemInfo()
	_, blas := d.NewBLAS(BLASOptions{})
	_, plan := (&BLAS{device: &d}).Plan(Stream{}, Product{M: 1, N: 1, K: 1})
	_, dnn := d.NewDNN(DNNOptions{})
	_, convolution := (&DNN{device: &d}).Plan(Convolution{Rows: 1, Channels: 1, Height: 1, Width: 1, Filters: 1, Size: 1, Stride: 1})
	var b Batch
	b.Add(Function{}, Dim{}, Dim{}, 0)
	for i, err := range []error{
		alloc, stream, event, pinned, load, function, usage, capture, asked, done, elapsed, info, blas, plan, dnn, convolution,
		(&ConvPlan{dnn: &DNN{}}).Run(Stream{}, 0, ConvOperands{}), (&DNN{device: &d}).Destroy(),
		d.Free(0), p.Free(), b.Launch(Stream{}), Module{}.Unload(),
		Stream{}.Sync(t.Context()), Stream{}.Wait(Event{}), Stream{}.Destroy(), Stream{}.Copy(0, 0, 1), Stream{}.Fill(0, 0, 1),
		Stream{}.Zero(0, 1), Stream{}.Write(0, []byte{1}), Stream{}.Read([]byte{1}, 0),
		Event{}.Record(Stream{}), Event{}.Sync(t.Context()), Event{}.Destroy(),
		g.Launch(Stream{}), g.Upload(Stream{}), g.Destroy(),
	} {
		require.ErrorIs(t, err, ErrUnavailable, "call %d", i)
	}
}
