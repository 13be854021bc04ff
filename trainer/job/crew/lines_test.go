package crew

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Lines of workers have their name, and lines that come at once do not mix.
func TestLines(t *testing.T) {
	var out bytes.Buffer
	l := Lines{To: &out}
	l.Log("", []byte("a"))
	l.Notice("b")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { l.Log("vm/0", []byte("c")) })
	}
	all.Wait()
	require.Equal(t, "a\nb\n"+strings.Repeat("[vm/0] c\n", 8), out.String())
}
