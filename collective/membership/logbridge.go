package membership

import (
	"bytes"
	"context"
	"log"
	"log/slog"
)

// bridge returns a logger for memberlist. Each line gets the level below the
// one it begins with: what gossip calls an error is one packet or one try, which
// it makes up for by itself, and the data plane is what decides.
func bridge(to *slog.Logger) *log.Logger { return log.New(&levelWriter{to}, "", 0) }

type levelWriter struct{ to *slog.Logger }

// Write handles one line such as "[WARN] memberlist: text".
func (w *levelWriter) Write(line []byte) (int, error) {
	level, text := slog.LevelDebug, bytes.TrimSpace(line)
	for _, l := range []struct {
		tag   string
		level slog.Level
	}{
		{"[DEBUG]", slog.LevelDebug - 4}, {"[INFO]", slog.LevelDebug}, {"[WARN]", slog.LevelInfo}, {"[ERR]", slog.LevelWarn}, {"[ERROR]", slog.LevelWarn},
	} {
		if rest, ok := bytes.CutPrefix(text, []byte(l.tag)); ok {
			level, text = l.level, rest
			break
		}
	}
	text = bytes.TrimPrefix(bytes.TrimSpace(text), []byte("memberlist: "))
	w.to.Log(context.Background(), level, "gossip: "+string(text))
	return len(line), nil
}
