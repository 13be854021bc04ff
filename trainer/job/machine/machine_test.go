package machine

import (
	"cmp"
	"runtime"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// A process has room for the memory of the machine or of its control group, whichever is
// less. What the system does not report sets no limit.
func TestRoom(t *testing.T) {
	const gib, unlimited = 1 << 30, 1 << 47
	for _, c := range []struct {
		name          string
		memory, limit uint64
		want          uint64
	}{
		{"nothing is reported", 0, 0, unlimited},
		{"no control group", 8 * gib, 0, 8 * gib},
		{"a container", 64 * gib, 2 * gib, 2 * gib},
		{"a limit above the memory", 8 * gib, 64 * gib, 8 * gib},
		{"only a limit", 0, 3 * gib, 3 * gib},
		{"a limit that is none", 8 * gib, 1<<63 - 4096, 8 * gib},
	} {
		require.Equal(t, c.want, Machine{Memory: c.memory, Limit: c.limit}.room(), c.name)
	}
	require.Positive(t, Memory())
	require.LessOrEqual(t, Memory(), uint64(unlimited))
}

// The model of the first processor counts. Machines without one are named for their
// architecture.
func TestProcessor(t *testing.T) {
	for text, want := range map[string]string{
		"processor\t: 0\nmodel\t\t: 85\nmodel name\t: Intel(R) Xeon(R) CPU @ 2.00GHz\n\nprocessor\t: 1\nmodel name\t: other\n": "Intel(R) Xeon(R) CPU @ 2.00GHz",
		"model name : AMD: EPYC": "AMD: EPYC",
		"processor\t: 0\nBogoMIPS\t: 243.75\nCPU implementer\t: 0x41\n": "",
		"model name\t:\n":    "",
		"model name":         "",
		"my model name: x\n": "",
		"":                   "",
	} {
		require.Equal(t, cmp.Or(want, runtime.GOARCH), processor(fstest.MapFS{"proc/cpuinfo": {Data: []byte(text)}}), "%q", text)
	}
	require.Equal(t, runtime.GOARCH, processor(fstest.MapFS{}))
	require.NotEmpty(t, Processor())
	if runtime.GOOS != "linux" {
		require.Equal(t, runtime.GOARCH, Processor())
	}
}

// Counters that went back do not make a load of billions, which would mark a trial as
// core-bound.
func TestBusyOfCountersThatGoBack(t *testing.T) {
	before := ProcessorTime{busy: 1000, all: 5000}
	for _, c := range []struct {
		busy, all uint64
		want      float64
	}{
		{1250, 5500, .5}, {1000, 5500, 0}, {1500, 5500, 1},
		{999, 5500, 0},  // busy went back
		{1600, 5500, 1}, // waiting went back
		{1000, 5000, -1}, {1100, 4900, -1}, {0, 0, -1},
	} {
		require.Equal(t, c.want, ProcessorTime{busy: c.busy, all: c.all}.BusySince(before), "%d of %d", c.busy, c.all)
	}
}

// The counters of this machine, if it has any, give a load.
func TestProcessorTimes(t *testing.T) {
	before, ok := ProcessorTimes()
	if !ok {
		require.NotEqual(t, "linux", runtime.GOOS)
		t.Skip("the system does not report how busy its processors are")
	}
	require.Positive(t, before.all)
	require.LessOrEqual(t, before.busy, before.all)
	after, ok := ProcessorTimes()
	require.True(t, ok)
	require.GreaterOrEqual(t, after.all, before.all)
	require.LessOrEqual(t, after.BusySince(before), 1.)
}
