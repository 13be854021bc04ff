package launch_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringtrain/ringtrain/trainer/launch"
)

// keep opens the network namespace of a process, so that the test can inspect it after
// the process ends.
func keep(t *testing.T, pid string) *os.File {
	t.Helper()
	f, err := os.Open("/proc/" + pid + "/ns/net")
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// hasLink reports whether the namespace has an eth0. Its other end is at the switch, so
// it disappears together with the switch's namespace.
func hasLink(t *testing.T, space *os.File) bool {
	t.Helper()
	var found bool
	var err error
	over := make(chan struct{})
	go func() {
		defer close(over)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err = unix.Setns(int(space.Fd()), unix.CLONE_NEWNET); err != nil {
			return
		}
		_, missing := net.InterfaceByName("eth0")
		found = missing == nil
	}()
	<-over
	require.NoError(t, err)
	return found
}

func requireLinkGone(t *testing.T, space *os.File) {
	t.Helper()
	require.Eventually(t, func() bool { return !hasLink(t, space) }, long, 10*time.Millisecond)
}

// isolate moves the test into its own network namespace. It acts as the machine's for
// everything the test starts, so that changes to the real one do not disturb the test.
func isolate(t *testing.T) {
	t.Helper()
	runtime.LockOSThread() // never unlocked: the thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skip("no network namespace: ", err)
	}
}

// networkState returns everything visible about networks in the test's namespace, and the
// namespaces that this process holds open.
func networkState(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, arguments := range []string{"-o link", "-o address", "route"} {
		out, err := exec.Command("ip", strings.Fields(arguments)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		all = append(all, strings.Split(string(out), "\n")...)
	}
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, entry := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + entry.Name()); err == nil && strings.HasPrefix(to, "net:") {
			all = append(all, to)
		}
	}
	return all
}

func TestCloseLeavesNothing(t *testing.T) {
	isolate(t)
	before := networkState(t)
	n := newNetwork(t, 2, 1e9)
	require.NotEqual(t, before, networkState(t), "the namespaces must be open")
	b := make(chan string, 1)
	c := play("worker 0", "printer")
	c.Stdout = func(line []byte) { b <- string(line) }
	j := launch.Start(t.Context(), patience())
	run(t, j, n.Command(0, c))
	space := keep(t, <-b)
	require.True(t, hasLink(t, space))
	require.NoError(t, n.Close()) // while the worker is alive
	requireLinkGone(t, space)
	require.NoError(t, n.Close(), "a second Close does nothing")

	_, err := n.Counters()
	require.ErrorIs(t, err, launch.ErrNetworkClosed)
	_, err = j.Run(n.Command(0, play("late", "ok")))
	require.ErrorIs(t, err, launch.ErrNetworkClosed)
	require.ErrorContains(t, err, "start late")
	j.Stop(nil)
	j.Wait()
	require.NoError(t, space.Close())
	require.Equal(t, before, networkState(t))
}

// Workers in nodes end with their job as usual. A killed launcher takes down its workers
// and its network, and nothing else.
func TestKilledLauncherLeavesNothing(t *testing.T) {
	isolate(t)
	other := newNetwork(t, 2, 0)
	before := networkState(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envPart+"=networker", envNodes+"=3", envLink+"=100mbit")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewScanner(out)
	var spaces []*os.File
	for range 3 {
		require.True(t, lines.Scan())
		spaces = append(spaces, keep(t, lines.Text()))
		require.True(t, hasLink(t, spaces[len(spaces)-1]))
	}
	require.NoError(t, syscall.Kill(cmd.Process.Pid, syscall.SIGKILL))
	require.False(t, lines.Scan(), "the workers, which hold the other end of the pipe, must be gone")
	for _, space := range spaces {
		requireLinkGone(t, space)
		require.NoError(t, space.Close())
	}
	require.Equal(t, before, networkState(t))
	requireMeeting(t, other)
}

func TestCancelledNetwork(t *testing.T) {
	isolate(t)
	require.NoError(t, newNetwork(t, 1, 0).Close()) // skips if impossible
	before := networkState(t)
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	_, err := launch.Namespaces(ctx, 4, launch.NetworkOptions{Link: 1e9})
	require.ErrorIs(t, err, enough)
	require.Equal(t, before, networkState(t))
}

// build has another process with these attributes create a network.
func build(t *testing.T, attributes *syscall.SysProcAttr) (code int, says string) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe") // executable by any user, wherever the file is
	cmd.Env = append(os.Environ(), envPart+"=builder", envNodes+"=2", envLink+"=1gbit")
	cmd.SysProcAttr = attributes
	cmd.Dir = "/"
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Skip("cannot start such a process here: ", err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

func TestWithoutRoot(t *testing.T) {
	for _, program := range []string{"ip", "tc"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	var nobody *syscall.Credential
	if os.Geteuid() == 0 {
		nobody = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	const says = "creating them needs CAP_SYS_ADMIN; run as root, or under `unshare -Urn`"
	t.Run("a plain user", func(t *testing.T) {
		code, out := build(t, &syscall.SysProcAttr{Credential: nobody})
		require.Equal(t, 4, code, out)
		require.Contains(t, out, says)
	})
	asRoot := []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	asGroup := []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	t.Run("unshare -Ur", func(t *testing.T) { // it could leave its network namespace but not return
		code, out := build(t, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: asRoot, GidMappings: asGroup})
		require.Equal(t, 4, code, out)
		require.Contains(t, out, says)
	})
	t.Run("unshare -Urn", func(t *testing.T) {
		code, out := build(t, &syscall.SysProcAttr{
			Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET, UidMappings: asRoot, GidMappings: asGroup})
		if code == 4 { // some systems give user namespaces no capabilities
			t.Skip(out)
		}
		require.Zero(t, code, out)
	})
}

func TestWithoutPrograms(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := launch.Namespaces(t.Context(), 2, launch.NetworkOptions{})
	require.ErrorIs(t, err, launch.ErrNoNamespaces)
	require.EqualError(t, err, "launch: no network namespaces: the program ip is not in PATH; install iproute2, or add /usr/sbin to PATH")
}

func TestWrongNetworkOptions(t *testing.T) {
	tests := []struct {
		nodes   int
		options launch.NetworkOptions
		says    string
	}{
		{0, launch.NetworkOptions{}, "cannot have 0 nodes; use 1 to 250"},
		{-1, launch.NetworkOptions{}, "cannot have -1 nodes"},
		{251, launch.NetworkOptions{}, "cannot have 251 nodes"},
		{2, launch.NetworkOptions{Link: -1}, "link rate must be 1e+04 to 1e+12 bits per second, or 0 for no limit, not -1"},
		{2, launch.NetworkOptions{Link: 9999}, "link rate must be 1e+04 to 1e+12 bits per second, or 0 for no limit, not 9999"},
		{2, launch.NetworkOptions{Link: 1e12 + 1}, "bits per second, or 0 for no limit, not 1000000000001"},
		{2, launch.NetworkOptions{Burst: -1}, "burst must be 3028 to 32000 bytes, not -1"},
		{2, launch.NetworkOptions{Burst: 1500}, "burst must be 3028 to 32000 bytes, not 1500"},
		{2, launch.NetworkOptions{Burst: 32001}, "burst must be 3028 to 32000 bytes, not 32001"},
	}
	for _, test := range tests {
		t.Run(fmt.Sprint(test.nodes, test.options), func(t *testing.T) {
			_, err := launch.Namespaces(t.Context(), test.nodes, test.options)
			require.ErrorContains(t, err, test.says)
		})
	}
}
