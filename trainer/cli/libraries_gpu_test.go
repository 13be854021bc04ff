//go:build gpu && cgo && linux

package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/cuda/emulator"
	"github.com/ringtrain/ringtrain/cuda/kernels"
)

// standIns are the emulator's stand-ins for CUDA's libraries. Its methods make
// defective copies.
type standIns struct {
	t     *testing.T
	files map[string]string // by the variable that names the file
	twin  string            // the image that the driver loads in place of PTX
}

func newStandIns(t *testing.T) *standIns {
	t.Helper()
	if os.Getenv("RINGTRAIN_REQUIRE_GPU") != "" {
		t.Skip("needs the emulator")
	}
	onGPUs(t, nil) // skips without a compiler
	env, err := standIn()
	require.NoError(t, err)
	s := &standIns{t: t, files: map[string]string{}, twin: filepath.Join(t.TempDir(), "image")}
	for _, setting := range env {
		name, file, _ := strings.Cut(setting, "=")
		s.files[name] = file
	}
	nvrtc, err := emulator.Open(env, "RINGTRAIN_NVRTC_LIB")
	require.NoError(t, err)
	image, _, err := nvrtc.Compile(kernels.Source())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(s.twin, image, 0o600))
	return s
}

// copyWithout returns a directory with links to all stand-ins except one file.
func (s *standIns) copyWithout(name string) string {
	dir, home := s.t.TempDir(), filepath.Dir(s.files["RINGTRAIN_CUDA_LIB"])
	all, err := os.ReadDir(home)
	require.NoError(s.t, err)
	for _, file := range all {
		if file.Name() != name {
			require.NoError(s.t, os.Symlink(filepath.Join(home, file.Name()), filepath.Join(dir, file.Name())))
		}
	}
	return dir
}

// alone replaces a link to a file by a copy of the file, so that no kernels compiled with
// the file are cached for it.
func (s *standIns) alone(link string) string {
	text, err := os.ReadFile(link)
	require.NoError(s.t, err)
	require.NoError(s.t, os.Remove(link))
	require.NoError(s.t, os.WriteFile(link, text, 0o600))
	return link
}

// without returns a setting that names a copy of a library without a function.
func (s *standIns) without(variable, function string) string {
	text, err := os.ReadFile(s.files[variable])
	require.NoError(s.t, err)
	other := function[:len(function)-1] + "_"
	text = bytes.ReplaceAll(text, []byte("\x00"+function+"\x00"), []byte("\x00"+other+"\x00"))
	file := filepath.Join(s.copyWithout(filepath.Base(s.files[variable])), filepath.Base(s.files[variable]))
	require.NoError(s.t, os.WriteFile(file, text, 0o600))
	return variable + "=" + file
}

// needed is a function that each library must have.
var needed = map[string]string{
	"RINGTRAIN_CUDA_LIB": "cuGraphInstantiateWithFlags", "RINGTRAIN_NVRTC_LIB": "nvrtcGetCUBIN", "RINGTRAIN_CUBLASLT_LIB": "cublasLtMatmulPreferenceCreate",
	"RINGTRAIN_NCCL_LIB": "ncclCommFinalize", "RINGTRAIN_CUDNN_LIB": "cudnnConvolutionBackwardData",
}

// outdated returns a toolkit whose libraries all lack a function.
func (s *standIns) outdated() string {
	root := s.t.TempDir()
	require.NoError(s.t, os.Mkdir(filepath.Join(root, "lib64"), 0o700))
	for variable, function := range needed {
		_, file, _ := strings.Cut(s.without(variable, function), "=")
		require.NoError(s.t, os.Rename(file, filepath.Join(root, "lib64", filepath.Base(file))))
	}
	return root
}

// current returns a directory with intact libraries, laid out as a toolkit and as a
// Python virtual environment.
func (s *standIns) current() string {
	root := s.t.TempDir()
	for _, dir := range []string{"lib64", "lib/python3.12/site-packages/nvidia/all/lib"} {
		require.NoError(s.t, os.MkdirAll(filepath.Dir(filepath.Join(root, dir)), 0o700))
		require.NoError(s.t, os.Symlink(filepath.Dir(s.files["RINGTRAIN_CUDA_LIB"]), filepath.Join(root, dir)))
	}
	return root
}

// search returns settings that make the program search for libraries in two toolkits.
func search(first, second string) []string {
	env := []string{"CUDA_HOME=" + first, "CUDA_PATH=" + second}
	for variable := range needed {
		env = append(env, variable+"=")
	}
	return env
}

// inPlaces returns the defects of libraries installed in several places.
func (s *standIns) inPlaces() []defect {
	old, older, current := s.outdated(), s.outdated(), s.current()
	driver := func(root string) string {
		return root + "/lib64/libcuda.so.1 has no function " + needed["RINGTRAIN_CUDA_LIB"]
	}
	onlyNCCL := append(search(old, older), "RINGTRAIN_NCCL_LIB=", "LD_LIBRARY_PATH=")
	for _, variable := range []string{"RINGTRAIN_CUDA_LIB", "RINGTRAIN_NVRTC_LIB", "RINGTRAIN_CUBLASLT_LIB"} {
		onlyNCCL = append(onlyNCCL, variable+"="+s.files[variable])
	}
	nccl := "/lib64/libnccl.so.2 is NCCL 2.30.7, but was built without the function ncclCommFinalize"
	return []defect{
		{"outdated libraries in the first place", search(old, current), "", 0, nil, 2},
		{"outdated libraries where the loader looks", append(search("", ""), "LD_LIBRARY_PATH="+old+"/lib64", "VIRTUAL_ENV="+current), "", 0, nil, 2},
		{"outdated libraries in CUDA_HOME hide those of the loader", append(search(old, ""), "LD_LIBRARY_PATH="+current+"/lib64"), "", 0, nil, 2},
		{"outdated libraries in all places", search(old, older), "", 2,
			[]string{"no GPU can be used: none of the 2 files found for driver can be used: " + driver(old) + ": update the NVIDIA driver; " + driver(older)}, 1},
		{"an outdated NCCL in all places", onlyNCCL, "", 0,
			[]string{"gradients are summed in host memory, without NCCL: none of the 2 files found for NCCL can be used: " + old + nccl + "; " + older + nccl + ": pip install"}, 2},
	}
}

// wrong returns the defects of a variable that does not name a library but a missing
// file, a text file or a directory.
func (s *standIns) wrong(variable, library string) []defect {
	dir := s.t.TempDir()
	text := filepath.Join(dir, "text")
	require.NoError(s.t, os.WriteFile(text, bytes.Repeat([]byte("no library\n"), 100), 0o600))
	one := func(what, file, why string) defect {
		said := library + " cannot be loaded from " + file + ", which " + variable + " names: " + why + "; correct the variable, or unset it"
		return defect{name: what + " for " + library, env: []string{variable + "=" + file}, says: []string{said}}
	}
	return []defect{
		one("nothing", filepath.Join(dir, "none"), "cannot open shared object file: No such file or directory"),
		one("a text", text, "invalid ELF header"),
		one("a directory", dir, "cannot read file data: Is a directory"),
	}
}

// A defect is something wrong with a machine's libraries, and its effect: the exit
// code, and one line on stderr that contains all of says.
type defect struct {
	name    string
	env     []string
	args    string
	code    int
	says    []string
	workers int
}

// defects returns the defects of single libraries.
func (s *standIns) defects() []defect {
	const cudaLib, nvrtc, lt, nccl = "RINGTRAIN_CUDA_LIB", "RINGTRAIN_NVRTC_LIB", "RINGTRAIN_CUBLASLT_LIB", "RINGTRAIN_NCCL_LIB"
	const ownPTX, byHost = "ringtrain: using the program's own PTX kernels, compiled by the driver: ", "ringtrain: gradients are summed in host memory, without NCCL: "
	const noGPU, mustHave = "ringtrain: --device cuda: no GPU can be used: ", "ringtrain: --nccl must: "
	builtins := s.alone(filepath.Join(s.copyWithout("libnvrtc-builtins.so.13.0"), "libnvrtc.so.13"))
	all := []defect{
		{"an old driver", []string{"RINGTRAIN_EMULATOR_DRIVER=11000"}, "", 2, []string{noGPU, "supports CUDA 11.0, and 11.4 is needed: update the NVIDIA driver"}, 1},
		{"no GPU", []string{"RINGTRAIN_EMULATOR_DEVICES=0"}, "", 2, []string{noGPU, "check nvidia-smi"}, 1},
		{"a driver without a function", []string{s.without(cudaLib, "cuGraphInstantiateWithFlags")}, "", 2, []string{noGPU, "has no function cuGraphInstantiateWithFlags: update the NVIDIA driver"}, 1},
		{"no built-ins", []string{nvrtc + "=" + builtins}, "", 0, []string{ownPTX, "NVRTC 13.0 (" + builtins + ") does not work", "libnvrtc-builtins.so.13.0", "or set " + nvrtc}, 1},
		{"NVRTC without a function", []string{s.without(nvrtc, "nvrtcGetCUBIN")}, "", 0, []string{ownPTX, "has no function nvrtcGetCUBIN", "or set " + nvrtc}, 1},
		{"a driver that refuses what NVRTC makes", []string{"RINGTRAIN_EMULATOR_DRIVER=12080", "RINGTRAIN_EMULATOR_LT=12.8.0"}, "", 0,
			[]string{ownPTX, "CUDA_ERROR_INVALID_IMAGE", "NVRTC 13.0 (" + s.files[nvrtc] + ") is newer than the driver, which supports only CUDA 12.8", "or set " + nvrtc + " to one of CUDA 12"}, 1},
		{"cuBLASLt without a function", []string{s.without(lt, "cublasLtMatmulPreferenceCreate")}, "", 2, []string{noGPU, "has no function cublasLtMatmulPreferenceCreate", "or set " + lt}, 1},
		{"cuBLASLt newer than the driver", []string{"RINGTRAIN_EMULATOR_LT=14.0.1"}, "", 2, []string{noGPU, "cuBLASLt 14.0.1 (" + s.files[lt] + ") is newer than the driver", "or set " + lt + " to one of CUDA 13"}, 1},
		{"cuBLASLt without kernels", []string{"RINGTRAIN_EMULATOR_LT_KERNELS=0"}, "", 2, []string{"cuBLASLt 13.0.0 (" + s.files[lt] + ") has no kernel for it: update it, or set " + lt}, 1},
		{"cuBLASLt without kernels and without an error", []string{"RINGTRAIN_EMULATOR_LT_KERNELS=0", "RINGTRAIN_EMULATOR_LT_STATUS=0"}, "", 2, []string{"has no kernel for it: update it, or set " + lt}, 1},
		{"cuBLASLt without epilogues", []string{"RINGTRAIN_EMULATOR_LT_PLAIN=1", "RINGTRAIN_EMULATOR_LT_STATUS=7"}, "", 0, nil, 1},
	}
	for _, c := range append(s.wrong(cudaLib, "driver"), s.wrong(lt, "cuBLASLt")...) {
		all = append(all, defect{c.name, c.env, "", 2, append(c.says, noGPU), 1})
	}
	for _, c := range s.wrong(nvrtc, "NVRTC") {
		all = append(all, defect{c.name, c.env, "", 0, append(c.says, ownPTX), 1})
	}
	for _, c := range append(s.wrong(nccl, "NCCL"), []defect{
		{name: "an old NCCL", env: []string{"RINGTRAIN_EMULATOR_NCCL=2.19.2"}, says: []string{s.files[nccl] + " is NCCL 2.19.2, and 2.19.3 or newer is needed: pip install"}},
		{name: "NCCL without a function", env: []string{s.without(nccl, "ncclCommFinalize")}, says: []string{"is NCCL 2.30.7, but was built without the function ncclCommFinalize", "pip install"}},
		{name: "another library for NCCL", env: []string{nccl + "=" + s.files[lt]}, says: []string{s.files[lt] + " has no function ncclGetVersion, so it is not NCCL: pip install"}},
	}...) {
		all = append(all, c.ofNCCL(byHost, mustHave)...)
	}
	return all
}

// ofNCCL returns what a defect of NCCL leads to. With --nccl auto the host sums; with
// --nccl must nothing starts.
func (c defect) ofNCCL(byHost, mustHave string) []defect {
	auto, must := c, c
	auto.workers, auto.says = 2, append([]string{byHost}, c.says...)
	must.name += ", with --nccl must"
	must.workers, must.args, must.code, must.says = 2, "--nccl must", 2, append([]string{mustHave}, c.says...)
	return []defect{auto, must}
}

// unusual returns the lines of stderr, except the one about the job's address and those
// of the emulator.
func unusual(stderr string) []string {
	var lines []string
	for line := range strings.Lines(stderr) {
		if usual := regexp.MustCompile(`^(cluster \S+ on |emulator: )`); !usual.MatchString(line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// train trains, checks the exit code and stderr, and returns its last event.
func (c defect) train(t *testing.T, args []string) (last event) {
	t.Helper()
	cmd := onGPUs(t, args, c.env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run() // the exit code is checked below
	require.Equal(t, c.code, cmd.ProcessState.ExitCode(), "%s", stderr.String())
	said := unusual(stderr.String())
	if c.says == nil {
		require.Empty(t, said)
	} else {
		require.Len(t, said, 1)
		for _, text := range c.says {
			require.Contains(t, said[0], text)
		}
	}
	if c.code != 0 {
		require.NotContains(t, stdout.String(), `"step"`, "the training has not begun")
		return last
	}
	all := events(t, stdout.Bytes())
	return all[len(all)-1]
}

// If a library is missing, broken, too old or too new, a run either gives the bits
// that it gives with all of them, or does not begin. One line says what is missing,
// where it was looked for, and what to do.
func TestGPULibraries(t *testing.T) {
	s := newStandIns(t)
	run := func(t *testing.T, c defect) (weights string) {
		args := append([]string{"--device", "cuda", "--workers", []string{"1", "2"}[c.workers-1], "--share-gpu"}, strings.Fields(c.args)...)
		c.env = append(c.env, "RINGTRAIN_EMULATOR_PTX="+s.twin)
		return c.train(t, fewSteps(t, args...)).Weights
	}
	whole := map[int]string{1: run(t, defect{workers: 1}), 2: run(t, defect{workers: 2})}
	require.NotEmpty(t, whole[1])
	require.NotEmpty(t, whole[2])
	for _, c := range append(s.defects(), s.inPlaces()...) {
		t.Run(c.name, func(t *testing.T) {
			weights := run(t, c)
			if c.code == 0 {
				require.Equal(t, whole[c.workers], weights)
			}
		})
	}
}

// Without a working cuDNN, our kernels compute convolutions, and one line says why.
func TestGPUWithoutCuDNN(t *testing.T) {
	s := newStandIns(t)
	const cudnn = "RINGTRAIN_CUDNN_LIB"
	file := s.files[cudnn]
	copied := func(without string) string { // a link would lead to the missing part
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		main := filepath.Join(s.copyWithout(without), filepath.Base(file))
		require.NoError(t, os.Remove(main))
		require.NoError(t, os.WriteFile(main, text, 0o600))
		return main
	}("libcudnn_cnn.so.9")
	defects := append(s.wrong(cudnn, "cuDNN"), []defect{
		{name: "an old cuDNN", env: []string{"RINGTRAIN_EMULATOR_CUDNN=8.4.1"}, says: []string{file + " is cuDNN 8.4.1, and 8.5.0 or newer is needed: pip install"}},
		{name: "an unknown cuDNN", env: []string{"RINGTRAIN_EMULATOR_CUDNN=10.0.0"}, says: []string{file + " is cuDNN 10.0.0, which ringtrain does not know: pip install"}},
		{name: "cuDNN newer than the driver", env: []string{"RINGTRAIN_EMULATOR_CUDNN_REFUSES=driver"}, says: []string{file + " is cuDNN 9.1.0, for CUDA 14, and the driver supports CUDA 13.0: update the driver"}},
		{name: "cuDNN that does not start", env: []string{"RINGTRAIN_EMULATOR_CUDNN_REFUSES=create"}, says: []string{"cuDNN (" + file + ") does not start: cudnnCreate: ", "or set " + cudnn + " to another file"}},
		{name: "cuDNN without a function", env: []string{s.without(cudnn, "cudnnConvolutionBackwardData")}, says: []string{"has no function cudnnConvolutionBackwardData", "or set " + cudnn}},
		{name: "cuDNN without a part", env: []string{cudnn + "=" + copied}, says: []string{"cuDNN (" + copied + ") cannot be used without its other libraries: libcudnn_cnn.so.9: cannot open"}},
	}...)
	weights := ""
	for _, c := range defects {
		t.Run(c.name, func(t *testing.T) {
			c.says = append(c.says, "ringtrain: convolutions use ringtrain's own kernels, which are slower: ")
			last := c.train(t, []string{
				"train", "../../examples/convnet.cfg", "--data", "mnist:" + smallDir(), "--json", "--batch", "4", "--steps", "2", "--evaluation.frequency", "0",
				"--workers", "1", "--device", "cuda", "--time-products", t.TempDir(), // with this, cuDNN is opened even for a small network
			})
			require.NotEmpty(t, last.Weights)
			if weights == "" {
				weights = last.Weights
			}
			require.Equal(t, weights, last.Weights)
		})
	}
}

// Doctor reports what an installed NVRTC is missing, and libraries newer than the
// driver.
func TestGPUDoctor(t *testing.T) {
	s := newStandIns(t)
	nvrtc := filepath.Join(s.copyWithout("libnvrtc-builtins.so.13.0"), "libnvrtc.so.13")
	for _, c := range []struct {
		env  string
		says []string
	}{
		{"RINGTRAIN_NVRTC_LIB=" + s.files["RINGTRAIN_NVRTC_LIB"], []string{`NVRTC     13\.0, /.*/libnvrtc\.so\.13\n`, `cuBLASLt  13\.0\.0, /.*/libcublasLt\.so\.13\n`}},
		{"RINGTRAIN_NVRTC_LIB=" + nvrtc, []string{`NVRTC     13\.0 \(` + nvrtc + `\) does not work: .*failed to open libnvrtc-builtins\.so\.13\.0.*, or set RINGTRAIN_NVRTC_LIB to another file\n`}},
		{"RINGTRAIN_EMULATOR_DRIVER=12080", []string{`NVRTC     13\.0 \(/.*\) is newer than the driver, which supports only CUDA 12\.8: .*\n`, `cuBLASLt  13\.0\.0 \(/.*\) is newer than the driver, which supports only CUDA 12\.8: .*\n`}},
		{"RINGTRAIN_CUBLASLT_LIB=/nonexistent", []string{`cuBLASLt  missing: cuBLASLt cannot be loaded from /nonexistent, which RINGTRAIN_CUBLASLT_LIB names: .*\n`}},
	} {
		out, err := onGPUs(t, []string{"doctor"}, c.env).Output()
		require.NoError(t, err, "%s", out)
		for _, text := range c.says {
			require.Regexp(t, `\n`+text, string(out))
		}
	}
}
