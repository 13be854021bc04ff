package cli_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Over every transport, a run in rounds ends with the same bits, and sends the bytes of
// one step of allreduce in a round.
func TestRounds(t *testing.T) {
	args := []string{"--workers", "2", "--steps", "20", "--batch", "16"}
	plain := last(train(t, small(t, append(args, "--transport", "inproc")...)...))
	args = append(args, "--strategy", "diloco", "--inner-steps", "10", "--outer-rate", "0.5", "--outer-momentum", "0.8")
	want := last(train(t, small(t, append(args, "--transport", "inproc")...)...))
	require.Equal(t, plain.WireBytes, 10*want.WireBytes)
	for _, transport := range []string{"tcp", "shm"} {
		require.Equal(t, want.Weights, last(train(t, small(t, append(args, "--transport", transport)...)...)).Weights, transport)
	}
	require.NotEqual(t, want.Weights, last(train(t, small(t, append(args, "--transport", "inproc", "--outer-momentum", "0.7")...)...)).Weights)
}

// A flag of rounds without a strategy that has them is a mistake.
func TestRoundFlags(t *testing.T) {
	for want, args := range map[string][]string{
		"--inner-steps needs --strategy diloco or local-sgd": {"--inner-steps", "10"},
		"--outer-rate needs --strategy diloco":               {"--strategy", "local-sgd", "--outer-rate", "1"},
		"--outer-momentum needs --strategy diloco":           {"--outer-momentum", ".9"},
		"--inner-steps must be at least 1, not 0":            {"--strategy", "diloco", "--inner-steps", "0"},
		"--strategy is empty":                                {"--strategy", ""},
	} {
		code, _, stderr := result(small(t, args...)...)
		require.Equal(t, 2, code)
		require.Contains(t, stderr, want)
	}
	code, stdout, stderr := result("estimate", config(t), "--workers", "4", "--strategy", "local-sgd", "--inner-steps", "20")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "; once in 20 steps")
}
