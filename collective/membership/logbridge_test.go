package membership

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBridgeLowersLevels(t *testing.T) {
	var b bytes.Buffer
	to := slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{
		Level: slog.LevelDebug - 4,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
	logger := bridge(to, func(visitor) { t.Error("there was no visitor") })
	for _, line := range []string{"[DEBUG] memberlist: one", "[INFO] two", "[WARN] memberlist: three\n", "[ERR] memberlist: four", "Err: five"} {
		logger.Printf("%s", line)
	}
	require.Equal(t, `level=DEBUG-4 msg="gossip: one"
level=DEBUG msg="gossip: two"
level=INFO msg="gossip: three"
level=WARN msg="gossip: four"
level=DEBUG msg="gossip: Err: five"
`, b.String())
}
