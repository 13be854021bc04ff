package crew

import (
	"fmt"
	"io"
	"sync"
)

// Lines implements the part of a Display that shows lines, for displays that embed it.
type Lines struct {
	To io.Writer // gets a line per Write
	mu sync.Mutex
}

// Log is part of Display.
func (l *Lines) Log(name string, line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if name != "" {
		name = "[" + name + "] "
	}
	fmt.Fprintf(l.To, "%s%s\n", name, line)
}

// Notice is part of Display.
func (l *Lines) Notice(text string) { fmt.Fprintln(l.To, text) }
