package membership

import (
	"bytes"
	"context"
	"log"
	"log/slog"
)

// bridge returns a logger for memberlist that calls visit for every visitor that
// was turned away. Each line is logged one level lower than memberlist says: its
// errors concern one packet or one attempt, which it repeats, and the data plane
// decides anyway.
func bridge(to *slog.Logger, visit func(visitor)) *log.Logger {
	return log.New(&levelWriter{to, visit}, "", 0)
}

type levelWriter struct {
	to    *slog.Logger
	visit func(visitor)
}

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
	if v, ok := readVisitor(string(text)); ok {
		w.visit(v)
	}
	w.to.Log(context.Background(), level, "gossip: "+string(text))
	return len(line), nil
}
