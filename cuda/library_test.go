package cuda

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// place is a machine with the given variables and files.
func place(env map[string]string, python string, newest int, files ...string) surroundings {
	return surroundings{
		getenv: func(name string) string { return env[name] },
		glob: func(pattern string) []string {
			var found []string
			for _, file := range files {
				if ok, _ := filepath.Match(pattern, file); ok {
					found = append(found, file)
				}
			}
			slices.Sort(found)
			return found
		},
		python: python,
		newest: newest,
	}
}

func TestCandidates(t *testing.T) {
	sonames := []string{"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"}
	require.Equal(t, sonames, NVRTC.candidates(place(nil, "", 0)))

	set := map[string]string{"RINGTRAIN_NVRTC_LIB": "/x/libnvrtc.so", "HOME": "/home/u"}
	require.Equal(t, []string{"/x/libnvrtc.so"}, NVRTC.candidates(place(set, "", 0, "/usr/lib64/libnvrtc.so.13")),
		"a mistake in the variable must show")

	wheel := "/opt/torch/.venv/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13"
	older := "/opt/torch/.venv/lib/python3.12/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"
	kits := []string{"/usr/local/cuda-12.6/lib64/libnvrtc.so.12", "/usr/local/cuda-12.9/lib64/libnvrtc.so.12"}
	machine := append([]string{older, wheel}, kits...)
	require.Equal(t, append(slices.Clone(sonames), wheel, older, kits[1], kits[0]),
		NVRTC.candidates(place(nil, "/opt/torch/.venv/bin/python3", 13000, machine...)))

	require.Equal(t, []string{"libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so.13", kits[1], kits[0], wheel},
		NVRTC.candidates(place(map[string]string{"VIRTUAL_ENV": "/opt/torch/.venv"}, "", 12040, append(kits, wheel)...)),
		"what is newer than the driver comes last")

	for variable, file := range map[string]string{
		"CUDA_HOME":    "/kit/lib64/libcublasLt.so.12",
		"CUDA_PATH":    "/kit/lib64/libcublasLt.so.12",
		"CONDA_PREFIX": "/kit/lib/libcublasLt.so.12",
		"HOME":         "/kit/.local/lib/python3.11/site-packages/nvidia/cublas/lib/libcublasLt.so.12",
	} {
		found := CublasLt.candidates(place(map[string]string{variable: "/kit"}, "", 0, file))
		require.Equal(t, file, found[len(found)-1], variable)
	}
	found := NCCL.candidates(place(nil, "", 12000, "/usr/lib/x86_64-linux-gnu/libnccl.so.2"))
	require.Equal(t, []string{"libnccl.so.2", "/usr/lib/x86_64-linux-gnu/libnccl.so.2"}, found)
}
