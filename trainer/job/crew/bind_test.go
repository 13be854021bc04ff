package crew

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseBind(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.1":        "10.0.0.1:5",
		"10.0.0.1:7946":   "10.0.0.1:7946",
		"fd00::1":         "[fd00::1]:5",
		"[fd00::1]":       "[fd00::1]:5",
		"[fd00::1]:7946":  "[fd00::1]:7946",
		"[fe80::1%eth0]":  "[fe80::1%eth0]:5",
		"[fe80::1%eth0]:": "",
		"fe80::1%eth0":    "[fe80::1%eth0]:5",
		"[10.0.0.1]":      "",
		"[localhost]":     "",
		"[fd00::1":        "",
		"fd00::1]":        "",
		"":                "",
		":7946":           "",
		"localhost:x":     "",
		"localhost:":      "",
		"localhost:65536": "",
		"10.0.0.1/8":      "",
		"a b":             "",
		"a:b:c":           "",
	} {
		at, err := parseBind(text, 5, true)
		if want == "" {
			require.ErrorContains(t, err, "--bind must be an address of this machine", text)
			continue
		}
		require.NoError(t, err, text)
		require.Equal(t, want, at.String(), text)
	}
	for text, want := range map[string]uint16{"localhost": 5, "localhost:7946": 7946} {
		at, err := parseBind(text, 5, true)
		require.NoError(t, err, text)
		require.True(t, at.Addr().IsLoopback(), text)
		require.Equal(t, want, at.Port(), text)
	}
}
