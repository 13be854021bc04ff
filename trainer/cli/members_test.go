package cli

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/query"
)

// A process that is suspended is shown as such, whatever gossip believes.
func TestRollShowsStoppedProcesses(t *testing.T) {
	var text bytes.Buffer
	require.NoError(t, writeRoll(&text, query.Roll{Members: []query.Member{{Name: "n-1/0"}, {Name: "n-1/1", Alive: true, Stopped: true}}}))
	require.Regexp(t, `n-1/0 .* no `, text.String())
	require.Regexp(t, `n-1/1 .* stopped`, text.String())
}
