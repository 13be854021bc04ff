package launch

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestErr(t *testing.T) {
	saved := Exit{Name: "worker 0", Pid: 7, Code: 75, ByUs: true}
	crashed := Exit{Name: "worker 1", Pid: 8, Code: -1, Signal: syscall.SIGSEGV, At: time.Second}
	cause := errors.New("enough")
	tests := []struct {
		name    string
		outcome Outcome
		want    string
	}{
		{"success", Outcome{Exits: []Exit{{Name: "worker 0"}}}, ""},
		{"root before cause", Outcome{Exits: []Exit{saved, crashed}, Root: &crashed, Cause: cause},
			"worker 1 (pid 8) was killed by signal 11 (segmentation fault)"},
		{"cause before exits that were asked for", Outcome{Exits: []Exit{saved}, Cause: cause}, "the job was stopped: enough"},
		{"saved at a signal", Outcome{Exits: []Exit{{Name: "worker 2"}, saved}}, "worker 0 (pid 7) exited with code 75"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := test.outcome.Err()
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, test.want)
		})
	}
}

func TestRootCauseOfEqualTimes(t *testing.T) {
	exits := []Exit{{Name: "a", Code: 1}, {Name: "b", Code: -1, Signal: syscall.SIGKILL}, {Name: "c", Code: -1, Signal: syscall.SIGKILL}}
	require.Same(t, &exits[1], rootCause(exits, 0))
	require.Same(t, &exits[0], rootCause(exits[:1], 0))
	require.Nil(t, rootCause(nil, time.Hour))
}

func TestDefaults(t *testing.T) {
	require.Equal(t, Options{10 * time.Second, 10 * time.Second, 2 * time.Second, 20, 64 << 10}, Options{}.withDefaults())
	own := Options{time.Second, time.Minute, time.Hour, 1, 2}
	require.Equal(t, own, own.withDefaults())
	require.Equal(t, Options{Tail: 1, MaxLine: 1}, Options{-1, -1, -1, 1, 1}.withDefaults())
}
