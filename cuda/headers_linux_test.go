package cuda

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// headers runs scripts/cuda-headers.sh with --offline, so that it never fetches anything.
func headers(t *testing.T, env []string, args ...string) (code int, stdout, stderr string) {
	return runHeaders(t, env, append([]string{"--offline"}, args...)...)
}

func runHeaders(t *testing.T, env []string, args ...string) (code int, stdout, stderr string) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("there is no bash")
	}
	cmd := exec.Command("bash", append([]string{"../scripts/cuda-headers.sh"}, args...)...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if exit, ok := err.(*exec.ExitError); ok {
		return exit.ExitCode(), out.String(), errs.String()
	}
	require.NoError(t, err)
	return 0, out.String(), errs.String()
}

// toolkit makes a directory with the header of a toolkit.
func toolkit(t *testing.T, name string) string {
	dir := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.MkdirAll(dir+"/include", 0o755))
	require.NoError(t, os.WriteFile(dir+"/include/cuda.h", []byte("#define CUDA_VERSION 12090\n"), 0o644))
	return dir
}

func TestHeadersOfToolkit(t *testing.T) {
	for _, name := range []string{"cuda", "with space"} {
		dir := toolkit(t, name)
		code, stdout, stderr := headers(t, []string{"CUDA_HOME=" + dir})
		require.Zero(t, code, stderr)
		require.Equal(t, dir+"/include\n", stdout)

		// The output of --env is for eval, and evaluating it twice does no harm.
		code, stdout, stderr = headers(t, []string{"CUDA_HOME=" + dir}, "--env")
		require.Zero(t, code, stderr)
		out, err := exec.Command("bash", "-c", stdout+`printf %s "$CGO_ENABLED $CGO_CFLAGS"`).Output()
		require.NoError(t, err)
		enabled, flags, _ := strings.Cut(string(out), " ")
		require.Equal(t, "1", enabled)
		require.Regexp(t, `^"?-I/.*/cuda/compat13"? "?-I`+dir+`/include"? -O2 -g$`, flags)
		_, again, _ := headers(t, []string{"CUDA_HOME=" + dir, "CGO_CFLAGS=" + flags}, "--env")
		require.Equal(t, stdout, again)
		_, more, _ := headers(t, []string{"CUDA_HOME=" + dir, "CGO_CFLAGS=-DX"}, "--env")
		require.Contains(t, more, "-DX", "the user's own flags must stay")
	}
}

func TestHeadersFromCache(t *testing.T) {
	cache := t.TempDir()
	code, stdout, stderr := headers(t, nil, "--version", "12.9", "--dir", cache)
	require.Equal(t, 1, code)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "install a CUDA toolkit (11.8 to 13) and set CUDA_HOME")

	require.NoError(t, os.Mkdir(cache+"/12.9", 0o755))
	require.NoError(t, os.WriteFile(cache+"/12.9/cuda.h", nil, 0o644))
	code, _, _ = headers(t, nil, "--version", "12.9", "--dir", cache)
	require.Equal(t, 1, code, "an empty file is not a header")
	require.NoError(t, os.WriteFile(cache+"/12.9/cuda.h", []byte("//\n"), 0o644))
	code, stdout, stderr = headers(t, nil, "--version", "12.9", "--dir", cache)
	require.Zero(t, code, stderr)
	require.Equal(t, cache+"/12.9\n", stdout)
}

// A header that could not be read as a whole is neither used nor kept.
func TestHeadersTruncated(t *testing.T) {
	bin, cache := t.TempDir(), t.TempDir()
	const python = "#!/bin/sh\nif [ \"$1\" = - ]; then echo '#define' >\"$2/cuda.h\"; exit 1; fi\n"
	require.NoError(t, os.WriteFile(bin+"/python3", []byte(python), 0o755))
	code, stdout, stderr := runHeaders(t, []string{"PATH=" + bin + ":" + os.Getenv("PATH")}, "--version", "12.9", "--dir", cache)
	require.Equal(t, 1, code)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "could not fetch it")
	left, err := filepath.Glob(cache + "/*/*")
	require.NoError(t, err)
	require.Empty(t, left)
}

// make gpu builds nothing if there is no header. eval of a command that fails succeeds.
func TestMakeWithoutHeaders(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("there is no make")
	}
	makefile, err := filepath.Abs("../Makefile")
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(dir+"/scripts", 0o755))
	for _, rc := range []string{"0", "1"} {
		require.NoError(t, os.WriteFile(dir+"/scripts/cuda-headers.sh", []byte("#!/bin/sh\nexit "+rc+"\n"), 0o755))
		out, err := exec.Command("make", "-C", dir, "-f", makefile, "gpu", "GO=echo go").CombinedOutput()
		require.Equal(t, rc == "0", err == nil, "%s", out)
		require.Equal(t, rc == "0", strings.Contains(string(out), "\ngo build "), "%s", out)
	}
}

func TestHeadersUsage(t *testing.T) {
	for _, args := range [][]string{{"--nosuch"}, {"--version"}, {"--version", "10"}, {"--dir"}} {
		code, stdout, stderr := headers(t, nil, args...)
		require.Equal(t, 2, code, args)
		require.Empty(t, stdout)
		require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
	}
	code, stdout, _ := headers(t, nil, "--help")
	require.Zero(t, code)
	require.Contains(t, stdout, "--env")
}
