package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The scripts take a toolkit's library rather than a newer one of python3's packages,
// and have libraries find what lies beside them.
func TestScriptsFindLibraries(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	for _, file := range []string{"kit/lib64/librt-a.so.12", "wheels/nvidia/cu13/lib/librt-a.so.13", "wheels/nvidia/nccl/lib/librt-b.so.2"} {
		path := filepath.Join(dir, file)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, nil, 0o600))
	}
	const script = `set -u
source ../parts.sh
wheels=$HERE/wheels CUDA_HOME=$HERE/kit LD_LIBRARY_PATH=/before
a=$(library "" librt-a.so.13 librt-a.so.12) b=$(library "" librt-b.so.2)
library "" librt-none.so.1 && echo found
library /given librt-a.so.13
beside "" "$a" "$b" "$a"
printf '%s\n' "$a" "$b" "$LD_LIBRARY_PATH"`
	cmd := exec.CommandContext(t.Context(), bash, "-c", script)
	cmd.Env = append(os.Environ(), "HERE="+dir)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	a, b := filepath.Join(dir, "kit/lib64"), filepath.Join(dir, "wheels/nvidia/nccl/lib")
	require.Equal(t, "/given\n"+a+"/librt-a.so.12\n"+b+"/librt-b.so.2\n"+b+":"+a+":/before\n", string(out))
}
