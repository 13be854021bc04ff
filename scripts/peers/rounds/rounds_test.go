package rounds_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/scripts/peers/rounds"
)

func TestPrograms(t *testing.T) {
	p := rounds.Programs{{"a", "Ay"}, {"b", "Bee"}}
	require.Equal(t, []int{0, 1, 2}, []int{p.Index("a"), p.Index("b"), p.Index("c")})
	require.Equal(t, []string{"Bee", "c"}, []string{p.Title("b"), p.Title("c")})
}

func TestNotes(t *testing.T) {
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	notes := rounds.Notes(flags)
	require.NoError(t, flags.Parse([]string{"-note", "one", "-note", "two"}))
	require.Equal(t, []string{"one", "two"}, *notes)
}

func TestRead(t *testing.T) {
	pattern := regexp.MustCompile(`^(\d)-(\w+)$`)
	files := fstest.MapFS{"2-b": {Data: []byte("B")}, "1-a": {Data: []byte("A")}}
	var seen []string
	parse := func(groups []string, text []byte) error {
		seen = append(seen, strings.Join(append(groups, string(text)), " "))
		return nil
	}
	require.NoError(t, rounds.Read(files, pattern, "N-X", parse))
	require.Equal(t, []string{"1 a A", "2 b B"}, seen)
	require.EqualError(t, rounds.Read(files, pattern, "N-X", func([]string, []byte) error { return errors.New("no") }), "1-a: no")
	files["x"] = &fstest.MapFile{}
	require.EqualError(t, rounds.Read(files, pattern, "N-X", parse), "x: its name must have the form N-X")
	require.Error(t, rounds.Read(os.DirFS(filepath.Join(t.TempDir(), "none")), pattern, "N-X", parse))
}

func TestWriteCSV(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "x.csv")
	require.NoError(t, rounds.WriteCSV(name, [][]string{{"a", "b"}, {rounds.Exact(1e7 / 3), "x,y"}}))
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "a,b\n3.3333333333333335e+06,\"x,y\"\n", string(text))
	require.Error(t, rounds.WriteCSV(dir, nil))
}

func TestTable(t *testing.T) {
	// The quotient of the medians would be 3.
	require.Equal(t, 2., rounds.Ratio([]float64{30, 2, 60}, []float64{10, 2, 30}))
	var b strings.Builder
	rounds.Head(&b, "a", "b")
	rounds.Row(&b, "c", rounds.Spread([]float64{3, 1, 2}, rounds.Exact))
	require.Equal(t, "| a | b |\n|---|---|\n| c | 2 [1-3] |\n", b.String())
}
