package launch

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// split feeds chunks to a splitter and returns the lines.
func split(limit int, chunks ...string) []string {
	lines := []string{}
	s := splitter{max: limit, emit: func(line []byte) { lines = append(lines, string(line)) }}
	for _, c := range chunks {
		s.write([]byte(c))
	}
	s.flush()
	return lines
}

func TestSplitter(t *testing.T) {
	tests := []struct {
		name   string
		chunks []string
		want   []string
	}{
		{"nothing", nil, []string{}},
		{"one line", []string{"one\n"}, []string{"one"}},
		{"in parts", []string{"o", "n", "e\nt", "wo\n"}, []string{"one", "two"}},
		{"empty lines", []string{"\n\n", "a\n\n"}, []string{"", "", "a", ""}},
		{"unterminated last line", []string{"a\nb"}, []string{"a", "b"}},
		{"as long as allowed", []string{"1234567", "8\n"}, []string{"12345678"}},
		{"longer", []string{"123456789\nab\n"}, []string{"12345678", "9", "ab"}},
		{"much longer, in parts", []string{"1234", "567812345678", "12\n"}, []string{"12345678", "12345678", "12"}},
		{"Windows", []string{"a\r", "\nb\rc\r\n"}, []string{"a", "b\rc"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, test.want, split(8, test.chunks...))
		})
	}
}

// Lines do not depend on how the stream was split, none is too long, and together they
// are the stream.
func FuzzSplitter(f *testing.F) {
	f.Add("one\ntwo\r\n\nthree", uint8(5), uint8(3))
	f.Add(strings.Repeat("x", 100)+"\n\r\n", uint8(33), uint8(7))
	f.Fuzz(func(t *testing.T, stream string, cut, limit uint8) {
		most := 1 + int(limit)
		want := split(most, stream)
		at := min(int(cut), len(stream))
		require.Equal(t, want, split(most, stream[:at], stream[at:]))
		require.Equal(t, want, split(most, strings.SplitAfter(stream, "")...), "byte by byte")
		for _, line := range want {
			require.LessOrEqual(t, len(line), most)
			require.NotContains(t, line, "\n")
		}
		plain := func(s string) string { return strings.NewReplacer("\r", "", "\n", "").Replace(s) }
		require.Equal(t, plain(stream), plain(strings.Join(want, "")))
	})
}

func TestTail(t *testing.T) {
	last := tail{max: 2}
	for _, line := range []string{"a", "b", "c", "d"} {
		last.add([]byte(line))
	}
	require.Equal(t, []string{"c", "d"}, last.lines)
}
