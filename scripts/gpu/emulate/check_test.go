package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// On a machine with a GPU each kernel is compared in a process of its own, and one
// that fails is run again alone, and by the sanitizer. Here programs that only say
// how they were called are in the place of the tests and the sanitizer.
func TestCheckRunsKernelsApart(t *testing.T) {
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"kernels.test": `#!/bin/bash
case "$*" in
*TestImage*) echo "--- PASS: TestImageIsOfTheSource (0.00s)"; exit ;;
esac
name=${*: -1} name=${name##*^} name=${name%$}
echo "=== RUN   TestParity/$name"
echo "blocking ${CUDA_LAUNCH_BLOCKING-no} $*"
if [[ $name == adam ]]; then echo "CUDA_ERROR_ILLEGAL_ADDRESS"; exit 2; fi
echo "    --- PASS: TestParity/$name (0.00s)"
`,
		"compute-sanitizer": `#!/bin/bash
echo "sanitizer $*"
exit 9
`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755))
	}
	cmd := exec.CommandContext(t.Context(), "bash", filepath.Join(root, "scripts", "gpu-check.sh"), "--parts", "parity", "--binaries", dir)
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "OUT=")
	out, err := cmd.Output()
	require.Error(t, err, "one failed")
	require.Equal(t, 1, cmd.ProcessState.ExitCode(), "%s", out)

	sources, err := filepath.Glob(filepath.Join(root, "cuda", "kernels", "*.cu"))
	require.NoError(t, err)
	kernels := 0
	for _, source := range sources {
		text, err := os.ReadFile(source)
		require.NoError(t, err)
		kernels += bytes.Count(text, []byte("\nextern \"C\" __global__"))
	}
	said := string(out)
	require.Equal(t, kernels-1, strings.Count(said, "\npassed "), "%s", said)
	require.Contains(t, said, "FAILED adam: exit code 2")
	require.Contains(t, said, "TestParity/adam alone, with CUDA_LAUNCH_BLOCKING=1:\n\n```\nblocking 1 -test.v -test.run ^TestParity$/^adam$\n")
	require.Contains(t, said, "sanitizer --tool memcheck")
	require.Contains(t, said, "| parity | FAILED |")
}
