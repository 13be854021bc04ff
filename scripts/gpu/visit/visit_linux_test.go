package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// trial returns a visit of this tree whose binaries are scripts.
func trial(t *testing.T, scripts map[string]string, limit time.Duration) *visit {
	t.Helper()
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	s := settings{root: root, binaries: t.TempDir(), out: t.TempDir(), limit: limit, grace: 100 * time.Millisecond, find: func() python { return python{} }}
	for name, text := range scripts {
		require.NoError(t, os.WriteFile(filepath.Join(s.binaries, name), []byte("#!/bin/bash\n"+text), 0o755))
	}
	v := newVisit(t.Context(), s, t.TempDir())
	v.until = v.begun.Add(limit)
	return v
}

// Without a version the visit behaves as if there were no driver.
func TestDriver(t *testing.T) {
	for text, want := range map[string]int{`{"gpu":{"cuda":"12.9"}}`: 12, `{"gpu":{}}`: 0, "nonsense": 0} {
		require.Equal(t, want, trial(t, map[string]string{"ringtrain": "echo '" + text + "'"}, time.Minute).driver(), text)
	}
}

// gone waits until a process has ended.
func gone(t *testing.T, pid string) {
	t.Helper()
	require.Eventually(t, func() bool {
		text, err := os.ReadFile("/proc/" + pid + "/stat")
		return err != nil || bytes.Contains(text, []byte(") Z "))
	}, 5*time.Second, 10*time.Millisecond, "process %s is still there", pid)
}

// A command that hangs is killed with all processes that it has started, even if they ignore
// signals, or are in another process group or session.
func TestCommandsThatHang(t *testing.T) {
	v := trial(t, map[string]string{"hangs": `trap "" QUIT TERM INT
sleep 1001 & echo "pid $!"
setsid sleep 1002 & echo "pid $!"
echo "it has begun"
sleep 1003`}, time.Minute)
	o := v.execute(command{name: "hangs", args: []string{v.program("hangs")}, limit: 300 * time.Millisecond})
	require.True(t, o.late)
	require.Contains(t, o.problem(), "killed after 0 s, its time limit")
	require.Less(t, o.took, 5*time.Second)
	require.Contains(t, o.text, "it has begun")
	found := 0
	for line := range strings.Lines(o.text) {
		if pid, is := strings.CutPrefix(line, "pid "); is {
			gone(t, strings.TrimSpace(pid))
			found++
		}
	}
	require.Equal(t, 2, found)
}

// Processes that a command leaves behind are killed when it ends, and do not delay the visit.
func TestCommandsThatLeaveProcesses(t *testing.T) {
	v := trial(t, map[string]string{"leaves": "sleep 1004 &\necho $!\nexit 3"}, time.Minute)
	o := v.execute(command{name: "leaves", args: []string{v.program("leaves")}})
	require.Equal(t, "exit status 3", o.problem())
	require.Less(t, o.took, 10*time.Second)
	gone(t, strings.Fields(afterCommand(o.text))[0])
}

func TestCommandsThatDoNotStart(t *testing.T) {
	v := trial(t, nil, time.Minute)
	require.Contains(t, v.execute(command{name: "none", args: []string{v.program("none")}}).problem(), "no such file")
	v.until = time.Now()
	require.Equal(t, "no time left", v.execute(command{name: "late", args: []string{"true"}}).problem())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	v = trial(t, map[string]string{"waits": "sleep 1005"}, time.Minute)
	v.ctx = ctx
	require.Equal(t, "interrupted", v.execute(command{name: "waits", args: []string{v.program("waits")}}).problem())
	require.Equal(t, notRun, v.step(first()[0], time.Minute).Verdict)
}

// visited runs steps like visitAll, and returns the printed table and the written results.
func visited(t *testing.T, v *visit, steps []step) (table string, results map[string]*result) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := visitAll(t.Context(), v.settings, steps, &stdout, &stderr)
	require.Empty(t, stderr.String())
	var read struct{ Steps []*result }
	text, err := os.ReadFile(filepath.Join(v.out, "result.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &read))
	results, good := map[string]*result{}, true
	for _, r := range read.Steps {
		results[r.Step] = r
		good = good && r.Verdict == ok
	}
	require.Equal(t, good, code == exitOK)
	for _, name := range []string{"report.md", "logs.tar.gz"} {
		require.FileExists(t, filepath.Join(v.out, name))
	}
	return stdout.String(), results
}

// If binaries hang, fail, crash, are missing or print nonsense, the visit still ends within its
// limit and reports it.
func TestVisitSurvives(t *testing.T) {
	v := trial(t, map[string]string{
		"ringtrain":      "echo '{ this is no JSON'; exit 1",
		"cuda.test":      "trap '' QUIT; sleep 1006",
		"gpu.test":       "exit 1",
		"ncclgroup.test": "echo '=== RUN   TestProcesses'; echo 'SIGSEGV: segmentation violation'; kill -SEGV $$",
		"probe":          "echo 'not measured: there is no driver'; exit 1",
		"speed":          "echo '--- PASS: nothing'; sleep 1007",
	}, 8*time.Second) // kernels.test is missing
	begin := time.Now()
	table, results := visited(t, v, first())
	require.Less(t, time.Since(begin), 10*time.Second)
	require.Len(t, results, len(first()))
	for name, want := range map[string]string{
		"facts": "kernels.test is missing", "cuda": "killed after", "training": "exit status 1", "parity": "no such file", "conformance": "exit status 1",
		"costs": "there is no driver", "train": "train-mnist-1-cuda: exit status 1", "nccl": "SIGSEGV", "kill": "the job ended before its twelfth step", "speed": "killed after",
	} {
		require.Equal(t, failed, results[name].Verdict, name)
		require.Contains(t, strings.Join(results[name].Failures, "\n"), want, name)
		require.Contains(t, table, "| "+name+" | FAILED |")
	}
	require.Equal(t, []string{"ncclgroup.test:TestProcesses"}, results["nccl"].Broken)
	require.Contains(t, table, "0 of 11 steps are ok.")
}

// passes begins a script: its function say prints a test's name, result and output.
const passes = `say() { echo "=== RUN   $1"; echo "    x_test.go:1: $3"; echo "--- $2: $1 (0.01s)"; }
`

// A skipped test does not count as passed. Its reason is reported, and if the test is
// essential, the step is SKIPPED.
func TestSkips(t *testing.T) {
	v := trial(t, map[string]string{
		"ncclgroup.test": passes + "say TestProcesses SKIP 'NCCL is too old'; say TestOperationsInProcesses PASS; say TestRingOrder PASS",
		"cuda.test":      passes + "for x in Devices Copies Kernels Graphs StreamsAndEvents Products OtherThread DeviceThread Convolutions; do say Test$x PASS; done; say TestExtra SKIP 'it does not matter'",
		"gpu.test":       passes + "say TestTraining PASS",
	}, time.Minute)
	table, results := visited(t, v, []step{first()[1], first()[2], first()[8], {name: "speed", need: 1, limit: 5, do: (*visit).speed}})
	require.Contains(t, table, "| cuda | ok | 9 | 1 | 0 |")
	require.Contains(t, table, "- cuda: TestExtra: x_test.go:1: it does not matter")
	require.Contains(t, table, "| nccl | SKIPPED | 2 | 1 | 0 |")
	require.Contains(t, table, "- nccl: TestProcesses: x_test.go:1: NCCL is too old")
	require.Equal(t, failed, results["training"].Verdict, "essential tests did not run")
	require.Contains(t, results["training"].Failures, "TestLockstep did not run")
	require.Contains(t, table, "- speed: no PyTorch: timed only ringtrain")
}

// Each kernel is compared in its own process. If one fails, it runs again alone, under the
// sanitizer, and in the second visit.
func TestKernelsApart(t *testing.T) {
	v := trial(t, map[string]string{
		"kernels.test": passes + `case "$*" in
*TestImage*) for x in ImageIsOfTheSource ImageHasBounds Resources; do say Test$x PASS; done; exit ;;
esac
while [[ $1 != -test.run ]]; do shift; done
name=$2 name=${name##*^} name=${name%$}
echo "blocking ${CUDA_LAUNCH_BLOCKING-no} $*"
if [[ $name == adam ]]; then echo "=== RUN   TestParity/adam"; echo "CUDA_ERROR_ILLEGAL_ADDRESS"; exit 2; fi
say TestParity/$name PASS
`,
		"compute-sanitizer": "echo '========= Invalid __global__ write of size 4 bytes'; echo \"========= $*\"; exit 9",
	}, time.Minute)
	t.Setenv("PATH", v.binaries+":"+os.Getenv("PATH"))
	all, _ := kernels(v.root)
	table, results := visited(t, v, []step{first()[3]})
	r := results["parity"]
	require.Equal(t, len(all)-1+3, r.Passed)
	require.Equal(t, 1, r.Failed)
	require.Equal(t, []string{"kernels.test:TestParity/adam"}, r.Broken)
	said := strings.Join(r.Failures, "\n")
	require.Contains(t, said, "TestParity/adam: exit status 2: CUDA_ERROR_ILLEGAL_ADDRESS")
	require.Contains(t, said, "TestParity/adam alone, with CUDA_LAUNCH_BLOCKING=1: exit status 2")
	require.Contains(t, said, "TestParity/adam alone, under memcheck: exit status 9: Invalid __global__ write of size 4 bytes")
	require.Contains(t, table, "| parity | FAILED |")

	v.earlier = filepath.Join(v.out, "result.json")
	table, _ = visited(t, v, []step{second()[0]})
	require.Contains(t, table, "1 failures to check again, from "+v.earlier)
	require.Contains(t, table, "TestParity/adam alone")
	v.earlier, v.failed = "", "cuda.test:TestX,nothing"
	_, results = visited(t, v, []step{second()[0]})
	require.Contains(t, strings.Join(results["failed"].Failures, "\n"), "nothing is neither a step nor BINARY:TEST")
	v.failed = ""
	require.NoError(t, os.Remove(filepath.Join(v.out, "result.json")))
	_, results = visited(t, v, []step{second()[0]})
	require.Contains(t, strings.Join(results["failed"].Failures, "\n"), "no result.json of a first visit")
}

// gpu-check.sh unpacks the programs, with Python if there is no xz. It forwards its flags and
// signals to the visit.
func TestScript(t *testing.T) {
	bash, err := exec.LookPath("bash")
	require.NoError(t, err)
	script, err := filepath.Abs("../../gpu-check.sh")
	require.NoError(t, err)
	visit := `trap 'echo ended; exit 1' TERM
if [[ -n ${WAIT-} ]]; then echo ready; while :; do sleep .01; done; fi
echo "visit $*"; exit 1`
	run := func(path string, env []string, args ...string) (string, int) {
		cmd := exec.CommandContext(t.Context(), bash, append([]string{script}, args...)...)
		cmd.Env = append(append(os.Environ(), "PATH="+path, "OUT="), env...)
		out, _ := cmd.CombinedOutput()
		return string(out), cmd.ProcessState.ExitCode()
	}
	packed := t.TempDir()
	for _, suffix := range []string{"gz", "xz"} {
		dir := filepath.Join(packed, suffix)
		require.NoError(t, os.MkdirAll(dir, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "visit"), []byte("#!/bin/bash\n"+visit), 0o755))
		pack := exec.CommandContext(t.Context(), "tar", "-C", dir, "--auto-compress", "-cf", filepath.Join(dir, "programs.tar."+suffix), "./visit")
		if out, err := pack.CombinedOutput(); err != nil {
			t.Logf("tar: %s", out)
			continue
		}
		require.NoError(t, os.Remove(filepath.Join(dir, "visit")))
		paths := map[string]string{"all programs": os.Getenv("PATH")}
		if exec.Command("python3", "-c", "import lzma").Run() == nil {
			paths["without xz"] = without(t, "xz")
		}
		for name, path := range paths {
			out, code := run(path, nil, "--visit", "rest", "--binaries", dir, "--out", "there", "--failed", "cuda.test:TestX", "--limit", "90")
			require.Equal(t, 1, code, "%s, %s: %s", suffix, name, out)
			require.Regexp(t, `^visit --?failed cuda.test:TestX --?limit 90 -root `+filepath.Dir(filepath.Dir(script))+` -binaries \S+/bin -out there -rest\n$`, out)
		}
	}
	out, code := run(os.Getenv("PATH"), nil, "--binaries", packed)
	require.Equal(t, 2, code)
	require.Contains(t, out, "has no programs: make them with --build")
	out, code = run(os.Getenv("PATH"), nil, "--parts", "x")
	require.Equal(t, 2, code)
	require.Contains(t, out, "unknown flag --parts")
	out, code = run(os.Getenv("PATH"), nil, "--help")
	require.Zero(t, code)
	require.Contains(t, out, "Exit code: 0 if every step is ok")

	cmd := exec.CommandContext(t.Context(), bash, script, "--binaries", filepath.Join(packed, "gz"))
	cmd.Env = append(os.Environ(), "WAIT=1")
	pipe, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	ready := make([]byte, len("ready\n"))
	_, err = io.ReadFull(pipe, ready)
	require.NoError(t, err)
	require.NoError(t, kill15(cmd.Process.Pid))
	rest, err := io.ReadAll(pipe)
	require.NoError(t, err)
	require.Equal(t, "ended\n", string(rest))
	require.Error(t, cmd.Wait())
	require.Equal(t, 1, cmd.ProcessState.ExitCode())
}

// --build fails if the packed programs are too large.
func TestPack(t *testing.T) {
	text, err := os.ReadFile("../../gpu-check.sh")
	require.NoError(t, err)
	build := "\tmake_programs \"$work/bin\"\n\tpack \"$build\"\n"
	require.Equal(t, 1, strings.Count(string(text), build))
	require.Contains(t, string(text), "most=$((40 << 20))")
	for bytes, want := range map[string]int{"1000": 0, "50000": 1} {
		script := filepath.Join(t.TempDir(), "scripts", "gpu-check.sh")
		require.NoError(t, os.MkdirAll(filepath.Dir(script), 0o755))
		changed := strings.Replace(string(text), build, "mkdir \"$work/bin\"\nhead -c "+bytes+" /dev/urandom >\"$work/bin/program\"\npack \"$build\"\n", 1)
		changed = strings.Replace(changed, "40 << 20", "40 << 10", 1)
		require.NoError(t, os.WriteFile(script, []byte(changed), 0o755))
		dir := t.TempDir()
		cmd := exec.CommandContext(t.Context(), "bash", script, "--build", dir)
		out, _ := cmd.CombinedOutput()
		require.Equal(t, want, cmd.ProcessState.ExitCode(), "%s", out)
		files, err := filepath.Glob(filepath.Join(dir, "programs.tar.*"))
		require.NoError(t, err)
		require.Len(t, files, 1-want)
		require.Regexp(t, `programs\.tar\.\w+: \d+ bytes`, string(out))
		require.Equal(t, want == 1, strings.Contains(string(out), "because they are too large"))
	}
}

func kill15(pid int) error { return exec.Command("kill", "-TERM", strconv.Itoa(pid)).Run() }

// without returns a PATH with all programs that the script needs except one.
func without(t *testing.T, program string) string {
	t.Helper()
	dir := t.TempDir()
	python, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output() // and no script that looks for it
	require.NoError(t, err)
	text := "#!/bin/bash\nexec " + strings.TrimSpace(string(python)) + ` "$@"`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "python3"), []byte(text), 0o755))
	for _, name := range []string{"bash", "cat", "cp", "dirname", "gzip", "kill", "mkdir", "mktemp", "realpath", "rm", "sed", "sleep", "tar", "xz"} {
		if path, err := exec.LookPath(name); err == nil && name != program {
			require.NoError(t, os.Symlink(path, filepath.Join(dir, name)))
		}
	}
	return dir
}
