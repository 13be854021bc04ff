package machine

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// Programs read "ringtrain doctor --json", so the names of fields must not change. What
// the system does not report is left out or 0.
func TestNames(t *testing.T) {
	all := Machine{Cores: 1, Online: 2, GOMAXPROCS: 3, Quota: .5, Memory: 4, Available: 5, Limit: 6, Instructions: "avx2", Kernel: "k", Clock: "tsc", Time: "t"}
	text, err := json.Marshal(all)
	require.NoError(t, err)
	require.Equal(t, `{"cores":1,"online_cores":2,"gomaxprocs":3,"quota":0.5,"memory":4,"available":5,"limit":6,"instructions":"avx2","kernel":"k","clock_source":"tsc","time":"t"}`, string(text))
	text, err = json.Marshal(Machine{})
	require.NoError(t, err)
	require.Equal(t, `{"cores":0,"online_cores":0,"gomaxprocs":0,"memory":0,"available":0,"instructions":"","kernel":"","time":""}`, string(text))
}

// Whatever the counters are, the load is a fraction or unknown.
func FuzzProcessorTime(f *testing.F) {
	f.Add("cpu  10 20 30 400 50 6 7 8 9 10\n", "cpu  40 20 30 460 60 6 7 8 9 10\n")
	f.Add("cpu 1 1 1 1 1 1 1 18446744073709551615", "cpu 0 0 0 0 0 0 0 0")
	f.Fuzz(func(t *testing.T, before, after string) {
		b, ok1 := parseProcessorTime(before)
		a, ok2 := parseProcessorTime(after)
		if !ok1 || !ok2 {
			return
		}
		busy := a.BusySince(b)
		require.True(t, busy == -1 || busy >= 0 && busy <= 1, "%v", busy)
	})
}
