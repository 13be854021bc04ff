package emulator

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

//go:embed src
var source embed.FS

// ErrNoCompiler is returned by Build if there is no g++.
var ErrNoCompiler = errors.New("emulator: no C++ compiler: install g++, or set CXX to one")

// A library is one of the emulator's libraries and its sources. Those without a variable are
// opened by name, by other libraries.
type library struct {
	variable, file, optimize string
	sources                  []string
}

var libraries = []library{
	{"RINGTRAIN_CUDA_LIB", "libcuda.so.1", "-O2", []string{"device.cpp", "memory.cpp", "stream.cpp", "capture.cpp", "module.cpp", "machine.cpp", "say.cpp"}},
	{"RINGTRAIN_NVRTC_LIB", "libnvrtc.so.13", "-O1", []string{"nvrtc.cpp"}},
	{"RINGTRAIN_CUBLASLT_LIB", "libcublasLt.so.13", "-O3", []string{"cublaslt.cpp", "say.cpp"}},
	{"RINGTRAIN_NCCL_LIB", "libnccl.so.2", "-O1", []string{"nccl.cpp", "collectives.cpp", "segment.cpp", "say.cpp"}},
	{"RINGTRAIN_CUDNN_LIB", "libcudnn.so.9", "-O2", []string{"cudnn.cpp", "cudnn9.cpp", "say.cpp"}},
	{"", "libcudnn.so.8", "-O2", []string{"cudnn.cpp", "cudnn8.cpp", "say.cpp"}},
	{"", "libcudnn_graph.so.9", "-O1", []string{"builtins.cpp"}},
	{"", "libcudnn_ops.so.9", "-O1", []string{"builtins.cpp"}},
	{"", "libcudnn_cnn.so.9", "-O1", []string{"builtins.cpp"}},
	{"", "libcudnn_ops_infer.so.8", "-O1", []string{"builtins.cpp"}},
	{"", "libcudnn_cnn_infer.so.8", "-O1", []string{"builtins.cpp"}},
	{"", "libcudnn_ops_train.so.8", "-O1", []string{"builtins.cpp"}},
	{"", "libcudnn_cnn_train.so.8", "-O1", []string{"builtins.cpp"}},
	{"", "libnvrtc-builtins.so.13.0", "-O1", []string{"builtins.cpp"}},
}

// flags are the compiler's. Libraries with unique symbols could not be unloaded.
var flags = []string{"-std=c++17", "-fPIC", "-shared", "-pthread", "-fvisibility=hidden", "-ffp-contract=off", "-fno-strict-aliasing", "-fno-gnu-unique", "-Wall"}

// userCache is the user's cache directory when the process began. TestMain may give the tests
// another one.
var userCache, _ = os.UserCacheDir()

// BuildShared is Build in a directory that the tests of all packages share: one in the user's
// cache, or else in that of temporary files.
func BuildShared(ctx context.Context) ([]string, error) {
	return Build(ctx, filepath.Join(cmp.Or(userCache, os.TempDir()), "ringtrain", "emulator"))
}

// Build compiles the emulator and returns the environment variables, as NAME=value, that make a
// program use it. The libraries are in a directory below dir that is named for their contents,
// so they are compiled only once. Build creates dir if necessary. Several processes may call it
// at once. The emulator's NVRTC keeps compiled kernels in the same directory.
func Build(ctx context.Context, dir string) ([]string, error) {
	text, err := fs.Sub(source, "src")
	if err != nil {
		return nil, fmt.Errorf("emulator: %w", err)
	}
	return build(ctx, dir, text, libraries)
}

// build is Build for some of the libraries, with these sources.
func build(ctx context.Context, dir string, text fs.FS, libraries []library) ([]string, error) {
	compiler, err := findCompiler()
	if err != nil {
		return nil, err
	}
	key, err := hash(text, compiler, libraries)
	if err != nil {
		return nil, fmt.Errorf("emulator: %w", err)
	}
	home, err := filepath.Abs(filepath.Join(dir, "emulator-"+key))
	if err != nil {
		return nil, fmt.Errorf("emulator: %w", err)
	}
	var env []string
	for _, l := range libraries {
		if l.variable != "" {
			env = append(env, l.variable+"="+filepath.Join(home, l.file))
		}
	}
	if _, err := os.Stat(home); err == nil {
		return env, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("emulator: %w", err)
	}
	work, err := os.MkdirTemp(dir, "building-")
	if err != nil {
		return nil, fmt.Errorf("emulator: %w", err)
	}
	defer os.RemoveAll(work)
	if err := os.CopyFS(work, text); err != nil {
		return nil, fmt.Errorf("emulator: %w", err)
	}
	jobs, ctx := errgroup.WithContext(ctx)
	for _, l := range libraries {
		jobs.Go(func() error { return l.compile(ctx, compiler, work) })
	}
	if err := jobs.Wait(); err != nil {
		return nil, err
	}
	// If another process was faster, its result is the same.
	if err := os.Rename(work, home); err != nil {
		if _, there := os.Stat(home); there != nil {
			return nil, fmt.Errorf("emulator: %w", err)
		}
	}
	return env, nil
}

func findCompiler() (string, error) {
	if runtime.GOOS != "linux" {
		return "", fmt.Errorf("emulator: needs Linux, not %s", runtime.GOOS)
	}
	name := os.Getenv("CXX")
	if name == "" {
		name = "g++"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%w (%w)", ErrNoCompiler, err)
	}
	return path, nil
}

func (l library) compile(ctx context.Context, compiler, dir string) error {
	args := slices.Concat(flags, []string{l.optimize, "-Wl,-soname," + l.file, "-o", l.file}, l.sources, []string{"-ldl", "-lrt"})
	cmd := exec.CommandContext(ctx, compiler, args...)
	cmd.Dir = dir
	cmd.WaitDelay = time.Second // its children also hold the pipe
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("emulator: %s of %s: %w\n%s", filepath.Base(compiler), l.file, err, bytes.TrimSpace(out))
	}
	return nil
}

// hash returns 16 digits that depend on the sources, the compiler and its flags.
func hash(text fs.FS, compiler string, libraries []library) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, compiler, flags, libraries)
	err := fs.WalkDir(text, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(text, path)
		fmt.Fprintln(h, path, len(content))
		h.Write(content)
		return err
	})
	return hex.EncodeToString(h.Sum(nil))[:16], err
}
