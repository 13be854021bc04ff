package cli_test

import (
	"bufio"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/cluster"
)

// storeAt starts "store serve" and returns the process and its address.
func storeAt(t *testing.T, args ...string) (cmd *exec.Cmd, addr string) {
	t.Helper()
	cmd = command(t, append([]string{"store", "serve"}, args...)...)
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(stderr).ReadString('\n')
	require.NoError(t, err, line)
	_, addr, found := strings.Cut(strings.TrimSpace(line), " at ")
	require.True(t, found, line)
	return cmd, addr
}

// stored runs a command of a store with stdin and returns its exit code and output.
func stored(t *testing.T, stdin string, args ...string) (code int, out string) {
	t.Helper()
	cmd := command(t, append([]string{"store"}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	b, _ := cmd.CombinedOutput()
	return cmd.ProcessState.ExitCode(), string(b)
}

// Values are there after the server was killed, and only holders of the key see them.
func TestStoreCommands(t *testing.T) {
	key, _ := keyFile(t)
	other, _ := keyFile(t)
	dir := t.TempDir()
	server, addr := storeAt(t, dir, "--bind", "127.0.0.1:0", "--key-file", key)
	at := []string{"--store", addr, "--key-file", key}
	run := func(stdin string, args ...string) (int, string) { return stored(t, stdin, append(args, at...)...) }
	type step struct {
		stdin string
		args  []string
		code  int
		says  string
	}
	check := func(steps []step) {
		t.Helper()
		for _, s := range steps {
			code, out := run(s.stdin, s.args...)
			require.Equal(t, s.code, code, "%v: %s", s.args, out)
			require.Equal(t, s.says, strings.TrimPrefix(out, "ringtrain: store "+addr+": "), "%v", s.args)
		}
	}
	check([]step{
		{"", []string{"keys"}, 0, ""},
		{"", []string{"set", "w", "1", "2.5", "3e-9"}, 0, "w: float64 [3], version 1\n"},
		{"-1 2\n nan Inf", []string{"set", "m m", "--type", "float32", "--shape", "2,2"}, 0, "m m: float32 [2 2], version 1\n"},
		{"a\x00b", []string{"set", "t", "--type", "bytes"}, 0, "t: 3 bytes, version 1\n"},
		{"", []string{"get", "m m"}, 0, "-1 2\nNaN +Inf\n"},
		{"", []string{"get", "m m", "--json"}, 0, `{"key":"m m","version":1,"type":"float32","shape":[2,2],"values":[-1,2,"NaN","+Inf"]}` + "\n"},
		{"", []string{"set", "w", "1", "2", "3", "--if-version", "7"}, 1, "\"w\" is at version 1, not 7: somebody else has updated it; get it again\n"},
		{"", []string{"set", "w", "1", "2"}, 2, "refused: \"w\" holds float64 [3], so it cannot become float64 [2]; use another key\n"},
		{"", []string{"get", "nope"}, 1, "no such key: \"nope\"\n"},
	})
	require.NoError(t, server.Process.Kill())
	require.Error(t, server.Wait())
	server, _ = storeAt(t, dir, "--bind", addr, "--key-file", key, "--store-sync", "100ms")
	check([]step{
		{"", []string{"keys"}, 0, "m m\nt\nw\n"},
		{"", []string{"keys", "w", "--json"}, 0, "[\"w\"]\n"},
		{"", []string{"get", "t"}, 0, "a\x00b"},
		{"", []string{"get", "t", "--json"}, 0, `{"key":"t","version":1,"type":"bytes","bytes":"YQBi"}` + "\n"},
		{"", []string{"get", "w"}, 0, "1 2.5 3e-09\n"},
		{"4 5 6", []string{"set", "w", "--if-version", "1"}, 0, "w: float64 [3], version 2\n"},
	})

	at = []string{"--store", addr, "--key-file", other}
	code, out := run("", "keys")
	require.Equal(t, 2, code)
	require.Equal(t, "ringtrain: store "+addr+": refused: it uses a different key; give both the same key file\n", out)
	t.Setenv(cluster.EnvKeyFile, key)
	at = []string{"--store", addr}
	code, _ = run("", "get", "w")
	require.Zero(t, code)

	if runtime.GOOS != "windows" {
		signal(t, server)
		require.Equal(t, 130, server.ProcessState.ExitCode())
	}
}

func TestStoreMistakes(t *testing.T) {
	for says, args := range map[string][]string{
		"store serve needs a DIR":                                        {"serve"},
		"store get takes one KEY, not 2":                                 {"get", "a", "b"},
		"store set takes a KEY, and numbers to store":                    {"set"},
		"store keys takes at most one PREFIX, not 2":                     {"keys", "a", "b"},
		`unknown command "gte"; did you mean ringtrain store get?`:       {"gte"},
		"put -- before negative numbers, as in: ringtrain store set KEY": {"set", "w", "-.5", "1"},
		"unknown flag: --shap; did you mean --shape?":                    {"set", "w", "--shap", "1"},
		"there are no numbers to store":                                  {"set", "w"},
		`a value must be a number that fits in float64, not "x"`:         {"set", "w", "x"},
		`a value must be a number that fits in float32, not "1e99"`:      {"set", "w", "1e99", "--type", "float32"},
		"refused: float64 [2 2] takes 32 bytes, not 8":                   {"set", "w", "1", "--shape", "2,2"},
		`--type must be float64, float32 or bytes, not "int8"`:           {"set", "w", "1", "--type", "int8"},
		`--type bytes reads stdin: it takes no "x"`:                      {"set", "w", "x", "--type", "bytes"},
		"--shape needs numbers":                                          {"set", "w", "--type", "bytes", "--shape", "1"},
		`--store: the address of a store must be HOST:PORT, not "here"`:  {"keys", "--store", "here"},
		"--timeout must be greater than 0, not -1s":                      {"keys", "--timeout", "-1s"},
		"no such file or directory; make one with ringtrain keygen":      {"keys", "--key-file", "nosuch.key"},
		`--store-sync must be always or a time of at most 10s`:           {"serve", t.TempDir(), "--store-sync", "0s"},
		"--key-file is empty: name the file that ringtrain keygen made":  {"serve", t.TempDir(), "--key-file", ""},
		"--bind is empty":  {"serve", t.TempDir(), "--bind", ""},
		"--store is empty": {"keys", "--store", ""},
		"--bind 0.0.0.0:0: without a key, every process that can": {"serve", t.TempDir(), "--bind", "0.0.0.0:0"},
	} {
		code, out := stored(t, "", args...)
		require.Equal(t, 2, code, "%v: %s", args, out)
		require.Contains(t, out, says)
		require.Equal(t, 1, strings.Count(out, "\n"), out)
	}
	code, out := stored(t, "", "keys", "--store", "127.0.0.1:1", "--timeout", "30ms")
	require.Equal(t, 1, code)
	require.Contains(t, out, "no store answers at 127.0.0.1:1 within 30ms: ")
}

// signal interrupts a process and waits for its end.
func signal(t *testing.T, cmd *exec.Cmd) {
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	_ = cmd.Wait() // the exit code tells
}

// A store shows the address that it was given, with the port that it got.
func TestStoreAddress(t *testing.T) {
	_, addr := storeAt(t, t.TempDir(), "--bind", "0.0.0.0:0", "--insecure")
	require.Regexp(t, `^0\.0\.0\.0:[1-9]\d*$`, addr)
}
