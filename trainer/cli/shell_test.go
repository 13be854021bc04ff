package cli

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// shellArgs returns the arguments that a shell passes to a command with these words.
func shellArgs(t require.TestingT, words string) []string {
	out, err := exec.Command("sh", "-c", `printf '%s\0' `+words).Output()
	require.NoError(t, err, "%q", words)
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

func TestCommandSurvivesShell(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip(err)
	}
	args := []string{
		"train", "examples/mnist.cfg", "--out=a,b", "", " ", "$HOME", "${HOME}", "$(id)", "`id`", "a#b", "#", "~", "~root", "*", "?", "[a-z]*", "{a,b}",
		"it's", "'", "''", `"`, `\`, `\n`, "a\nb", "\n", "a\tb", "a;b", "a&b", "a|b", "<a", ">a", "(a)", "!!", "^a", "x=~", "größe", "\xff",
	}
	a := app{args: args}
	require.Equal(t, append([]string{"ringtrain"}, args...), shellArgs(t, a.command()))

	rapid.Check(t, func(t *rapid.T) {
		char := rapid.OneOf(rapid.Byte(), rapid.SampledFrom([]byte("'\"\\$`#~*?[]{}!&;|<>() \n\t=")))
		args := rapid.SliceOfN(rapid.Map(rapid.SliceOf(char), func(b []byte) string {
			return strings.ReplaceAll(string(b), "\x00", "") // no argument has one
		}), 1, 9).Draw(t, "args")
		a := app{args: args}
		require.Equal(t, append([]string{"ringtrain"}, args...), shellArgs(t, a.command()))
	})
}

func TestCommandQuotesNoMoreThanNeeded(t *testing.T) {
	a := app{args: []string{"train", "examples/mnist.cfg", "--workers", "4", "--join=10.0.0.1:7946,vm-2:7946", "--until", "accuracy=.95", "--out", "my run", "--link", "100%"}}
	require.Equal(t, "ringtrain train examples/mnist.cfg --workers 4 --join=10.0.0.1:7946,vm-2:7946 --until accuracy=.95 --out 'my run' --link 100%", a.command())
}
