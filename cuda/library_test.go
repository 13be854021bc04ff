package cuda

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// machine describes a machine with these variables and files.
func machine(env map[string]string, python string, newest int, files ...string) surroundings {
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

// The order of candidates, on imaginary machines.
func TestCandidates(t *testing.T) {
	const (
		kit13  = "/usr/local/cuda-13.0/lib64/libnvrtc.so.13"
		kit129 = "/usr/local/cuda-12.9/lib64/libnvrtc.so.12"
		kit126 = "/usr/local/cuda-12.6/lib64/libnvrtc.so.12"
		own11  = "/opt/kit/lib64/libnvrtc.so.11.2"
		wheel  = "/opt/torch/.venv/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13"
		older  = "/opt/torch/.venv/lib/python3.12/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"
		so13   = "libnvrtc.so.13"
		so12   = "libnvrtc.so.12"
		so11   = "libnvrtc.so.11.2"
	)
	venv, own := map[string]string{"VIRTUAL_ENV": "/opt/torch/.venv"}, map[string]string{"CUDA_HOME": "/opt/kit"}
	for name, c := range map[string]struct {
		env    map[string]string
		driver int
		files  []string
		want   []string
	}{
		"only the loader":                        {nil, 0, nil, []string{so13, so12, so11}},
		"a toolkit before a newer wheel":         {venv, 13000, []string{wheel, kit126}, []string{so13, so12, kit126, so11, wheel}},
		"wheels, the newest first":               {venv, 13000, []string{older, wheel}, []string{so13, so12, so11, wheel, older}},
		"toolkits, the newest first":             {nil, 13000, []string{kit126, kit13, kit129}, []string{so13, kit13, so12, kit129, kit126, so11}},
		"12.10 is newer than 12.9":               {nil, 0, []string{"/usr/local/cuda-12.10/lib64/libnvrtc.so.12", kit129}, []string{so13, so12, "/usr/local/cuda-12.10/lib64/libnvrtc.so.12", kit129, so11}},
		"the toolkit of CUDA_HOME first":         {own, 13000, []string{kit13, own11}, []string{own11, so13, kit13, so12, so11}},
		"versions newer than the driver last":    {venv, 12040, []string{kit13, wheel, kit126}, []string{so12, kit126, so11, so13, kit13, wheel}},
		"even after an older wheel":              {venv, 12040, []string{kit13, older}, []string{so12, so11, older, so13, kit13}},
		"even in CUDA_HOME":                      {map[string]string{"CUDA_HOME": "/usr/local/cuda-13.0"}, 12040, []string{kit13, kit126}, []string{so12, kit126, so11, kit13, so13}},
		"nothing else if the variable is set":    {map[string]string{"RINGTRAIN_NVRTC_LIB": "/x/libnvrtc.so", "CUDA_HOME": "/opt/kit"}, 0, []string{kit13, own11}, []string{"/x/libnvrtc.so"}},
		"the driver's libraries of a container":  {nil, 0, []string{"/usr/local/nvidia/lib64/libnvrtc.so.12"}, []string{so13, so12, "/usr/local/nvidia/lib64/libnvrtc.so.12", so11}},
		"the system's directory for a processor": {nil, 0, []string{"/usr/lib/aarch64-linux-gnu/libnvrtc.so.12"}, []string{so13, so12, "/usr/lib/aarch64-linux-gnu/libnvrtc.so.12", so11}},
	} {
		require.Equal(t, c.want, NVRTC.candidates(machine(c.env, "", c.driver, c.files...)), name)
	}
	found := NVRTC.candidates(machine(nil, "/opt/torch/.venv/bin/python3", 0, wheel))
	require.Equal(t, wheel, found[len(found)-1], "in the directory of the interpreter")
}

// The search uses every variable that names an installation.
func TestPlacesOfVariables(t *testing.T) {
	for variable, file := range map[string]string{
		"CUDA_HOME":    "/kit/lib64/libcublasLt.so.12",
		"CUDA_PATH":    "/kit/lib64/libcublasLt.so.12",
		"CONDA_PREFIX": "/kit/lib/libcublasLt.so.12",
		"HOME":         "/kit/.local/lib/python3.11/site-packages/nvidia/cublas/lib/libcublasLt.so.12",
	} {
		require.Contains(t, CublasLt.candidates(machine(map[string]string{variable: "/kit"}, "", 0, file)), file, variable)
	}
}

// NVRTC and cuBLASLt come from the same place if one place has both.
func TestOnePlaceForAll(t *testing.T) {
	const kit, other = "/usr/local/cuda-12.6/lib64", "/usr/local/cuda-13.0/lib64"
	const wheels = "/venv/lib/python3.12/site-packages/nvidia"
	everywhere := []string{
		kit + "/libnvrtc.so.12", kit + "/libcublasLt.so.12", other + "/libnvrtc.so.13", other + "/libcublasLt.so.13",
		wheels + "/cuda_nvrtc/lib/libnvrtc.so.12", wheels + "/cublas/lib/libcublasLt.so.12", wheels + "/cu13/lib/libnvrtc.so.13", wheels + "/cu13/lib/libcublasLt.so.13",
	}
	first := func(l Library, driver int) string {
		for _, name := range l.candidates(machine(map[string]string{"VIRTUAL_ENV": "/venv"}, "", driver, everywhere...)) {
			if strings.Contains(name, "/") { // skip sonames: here the loader finds nothing
				return filepath.Dir(name)
			}
		}
		return ""
	}
	for driver, want := range map[int]string{12080: kit, 13000: other, 0: other} {
		require.Equal(t, want, first(NVRTC, driver), "driver %d", driver)
		require.Equal(t, want, first(CublasLt, driver), "driver %d", driver)
	}
}
