//go:build unix

package launch_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ringtrain/ringtrain/trainer/launch"
)

// The test binary also plays the workers of its tests: with this variable set, it plays
// the part that the variable names instead of running tests.
const (
	envPart   = "LAUNCH_TEST_PART"
	envBeacon = "LAUNCH_TEST_BEACON" // address of the test's beacon
	envPeer   = "LAUNCH_TEST_PEER"   // address of the worker to lose
)

func TestMain(m *testing.M) {
	if part := os.Getenv(envPart); part != "" {
		os.Exit(parts[part]())
	}
	// The race detector delays each exit by a second.
	if err := os.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// parts maps each part to a function that plays it and returns the exit code.
var parts = map[string]func() int{
	"ok":    func() int { fmt.Println("done"); return 0 },
	"three": func() int { fmt.Fprintln(os.Stderr, "cannot continue"); return 3 },
	// Ends when the test says so, or by a signal.
	"patient": func() int { hold("patient"); return 0 },
	// Like patient, but ignores SIGTERM.
	"deaf": func() int { signal.Ignore(syscall.SIGTERM); hold("deaf"); return 0 },
	// Saves at SIGTERM and asks to be restarted.
	"saver": func() int {
		term := make(chan os.Signal, 1)
		signal.Notify(term, syscall.SIGTERM)
		go hold("saver")
		<-term
		return 75
	},
	"victim": victim,
	"peer":   peer,
	// Leaves behind a child that would not end on its own.
	"careless": func() int { child("deaf", nil); hold("careless"); return 3 },
	// Has a child that leaves the process group and keeps the pipes open.
	"escaper": func() int {
		child("patient", &syscall.SysProcAttr{Setsid: true})
		hold("escaper")
		return 0
	},
	// Acts as a shell in front of the real worker: its child inherits everything,
	// including the lifeline.
	"wrapper": func() int {
		child("tethered", nil, os.NewFile(3, "lifeline"))
		hold("wrapper")
		return 0
	},
	"tethered": tethered,
	"launcher": launcher,
	"flood":    flood,
	"unended":  func() int { fmt.Print("a\nb"); fmt.Fprint(os.Stderr, "c\nd"); return 0 },
	// In network namespaces.
	"meet":      meet,
	"send":      send,
	"receive":   receive,
	"networker": networker,
	"printer":   printer,
	"builder":   builder,
	// Ends when its standard input is closed.
	"reader": func() int { _, _ = io.Copy(io.Discard, os.Stdin); return 0 },
	"where":  func() int { dir, _ := os.Getwd(); fmt.Println(dir, os.Getenv("COLOUR")); return 0 },
}

// hold connects to the beacon and blocks until the beacon is gone.
func hold(part string) {
	conn, err := net.Dial("tcp", os.Getenv(envBeacon))
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(conn, part, os.Getpid())
	_, _ = io.Copy(io.Discard, conn)
}

// victim accepts connections from its peers, which see them close when it dies.
func victim() int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go func() {
		for {
			if _, err := l.Accept(); err != nil {
				return
			}
		}
	}()
	fmt.Println(l.Addr())
	hold("victim")
	return 0
}

func peer() int {
	conn, err := net.Dial("tcp", os.Getenv(envPeer))
	if err != nil {
		panic(err)
	}
	go hold("peer")
	_, _ = io.Copy(io.Discard, conn)
	fmt.Fprintln(os.Stderr, "lost a peer")
	return 1
}

// child starts another process of this binary, in the same process group unless
// attributes say otherwise.
func child(part string, attributes *syscall.SysProcAttr, extra ...*os.File) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envPart+"="+part)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = attributes
	cmd.ExtraFiles = extra
	if err := cmd.Start(); err != nil {
		panic(err)
	}
}

func tethered() int {
	ctx, stop, err := launch.Lifeline(context.Background())
	if err != nil {
		panic(err)
	}
	defer stop()
	go hold("tethered")
	<-ctx.Done()
	if context.Cause(ctx) != launch.ErrLauncherGone {
		return 1
	}
	return 0
}

// launcher starts the workers named by its arguments and waits for them.
func launcher() int {
	j := launch.Start(context.Background(), launch.Options{})
	for _, part := range strings.Fields(os.Getenv("LAUNCH_TEST_WORKERS")) {
		_, err := j.Run(launch.Command{Path: os.Args[0], Env: []string{envPart + "=" + part}})
		if err != nil {
			panic(err)
		}
	}
	j.Wait()
	return 0
}

// flood writes floodLines numbered lines to both outputs.
func flood() int {
	w := bufio.NewWriter(os.Stdout)
	defer w.Flush()
	for i := range floodLines {
		fmt.Fprintln(w, i, strings.Repeat("x", i%300))
		if i%10 == 0 {
			fmt.Fprintln(os.Stderr, i)
		}
	}
	return 0
}

const floodLines = 100_000

// long is longer than any step of these tests takes on a loaded machine.
const long = 30 * time.Second
