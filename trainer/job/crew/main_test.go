//go:build unix

package crew

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// The test binary also plays the processes of its tests: with envPart set, it plays the
// part that the variable names instead of running tests.
const (
	envPart   = "CREW_TEST_PART"
	envDir    = "CREW_TEST_DIR"    // where a worker saves its flight record
	envBeacon = "CREW_TEST_BEACON" // address of the test, which workers stay connected to
)

func TestMain(m *testing.M) {
	if part := os.Getenv(envPart); part != "" {
		os.Exit(play(part))
	}
	// The race detector delays each exit by a second.
	if err := os.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(collectivetest.InOwnDirectories(m))
}

// play runs this process as a launcher or a worker, as a program would, and returns its
// exit code.
func play(part string) int {
	p, err := ThisProcess()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	err = p.Run(context.Background(), Part{
		Launch: launchTrain, Work: works()[part], Stdout: os.Stdout, Stderr: os.Stderr,
	})
	if err != nil {
		return 1
	}
	return 0
}

// A hello is the event of a worker that has a group. It is of a kind that package event
// does not have.
type hello struct {
	Local, Rank, Size, PID int
	Streams                int
	Cluster, Job, Node     string
	Bind                   string
	Threads, Tunables      string // GOMAXPROCS and GLIBC_TUNABLES
}

// Kind implements event.Event.
func (*hello) Kind() string { return "hello" }

func kindsOfTests() event.Table { return event.TableOf(func() event.Event { return new(hello) }) }

// works returns what workers do, by part.
func works() map[string]func(context.Context, *Worker) error {
	return map[string]func(context.Context, *Worker) error{
		"train": train,
		"steps": func(ctx context.Context, w *Worker) error {
			g, end, err := meet(w)
			if err != nil {
				return err
			}
			defer end()
			for step := 1; step <= 3; step++ {
				if err := g.Barrier(ctx); err != nil {
					return err
				}
				if g.Rank() == 0 {
					w.Events.Emit(&event.Step{Step: step})
				}
			}
			if g.Rank() == 0 {
				w.Events.Emit(&event.Result{Steps: 3})
			}
			return nil
		},
		// Emits the view of the largest job.
		"wide": func(_ context.Context, w *Worker) error {
			_, end, err := meet(w)
			if err != nil {
				return err
			}
			defer end()
			node := strings.Repeat("n", 250)
			e := &event.View{Epoch: 2, Members: make([]event.Member, MaxRanks)}
			for rank := range e.Members {
				e.Members[rank] = event.Member{Rank: rank, Name: fmt.Sprint(node, "/", rank), Node: node}
			}
			w.Events.Emit(e)
			return nil
		},
		// Shares memory with the other workers, which see what it writes there.
		"share": func(ctx context.Context, w *Worker) error {
			g, end, err := meet(w)
			if err != nil {
				return err
			}
			defer end()
			mine := w.Shared(4)
			v, err := w.Alloc(collective.Int32, 8)
			fmt.Println("shared", len(mine), v.Len(), err)
			return g.Barrier(ctx)
		},
		// Worker 1 ends before it joins, with a message and an exit code.
		"fail early": func(ctx context.Context, w *Worker) error {
			if w.Place.Local == 1 {
				fmt.Fprintln(os.Stderr, "no such device")
				os.Exit(3)
			}
			return train(ctx, w)
		},
		// One worker returns before it joins, as a program does whose workers end before
		// they reach Run.
		"skip 0": func(ctx context.Context, w *Worker) error { return unless(ctx, w, 0) },
		"skip 1": func(ctx context.Context, w *Worker) error { return unless(ctx, w, 1) },
		"usage": func(context.Context, *Worker) error {
			return Usagef("--batch is too large")
		},
		// Waits for another machine, which does not come.
		"time out": func(_ context.Context, w *Worker) error {
			node, err := w.Join(slog.LevelError)
			if err != nil {
				return err
			}
			defer node.Close()
			_, err = w.Form(50 * time.Millisecond)
			return err
		},
		// Worker 1 is killed while it writes an event.
		"torn": func(ctx context.Context, w *Worker) error {
			if w.Place.Local != 1 {
				return train(ctx, w)
			}
			_, _, err := meet(w)
			if err != nil {
				return err
			}
			fmt.Print(`{"event":"step","step":7,"lo`)
			return syscall.Kill(os.Getpid(), syscall.SIGKILL)
		},
		// Ignores all requests to stop.
		"deaf": func(_ context.Context, w *Worker) error {
			signal.Ignore(syscall.SIGTERM, syscall.SIGINT)
			_, _, err := meet(w)
			if err != nil {
				return err
			}
			select {}
		},
		// Does not finish its step after the first signal, but stops at the second.
		"slow": func(_ context.Context, w *Worker) error {
			_, end, err := meet(w)
			if err != nil {
				return err
			}
			defer end()
			<-w.Stop().Done()
			fmt.Println("asked")
			<-w.Quit().Done()
			return errors.New("lost the last checkpoint")
		},
		// Stays connected to the test until its launcher is gone.
		"tethered": func(ctx context.Context, w *Worker) error {
			conn, err := net.Dial("tcp", os.Getenv(envBeacon))
			if err != nil {
				return err
			}
			defer conn.Close()
			_, end, err := meet(w)
			if err != nil {
				return err
			}
			defer end()
			fmt.Fprintln(conn, "ready")
			<-ctx.Done()
			return context.Cause(ctx)
		},
	}
}

// meet joins the other workers and says hello.
func meet(w *Worker) (*collective.Group, func(), error) {
	w.RecordIn(os.Getenv(envDir))
	node, err := w.Join(slog.LevelError)
	if err != nil {
		return nil, nil, err
	}
	g, err := w.Form(time.Minute)
	if err != nil {
		return nil, nil, errors.Join(err, node.Close())
	}
	w.Begin()
	if w.Place.Local == 0 {
		w.Events.Emit(event.NewView(g.View()))
	}
	v := g.View()
	w.Events.Emit(&hello{
		Local: w.Place.Local, Rank: g.Rank(), Size: g.Size(), PID: os.Getpid(), Streams: w.Place.Streams, Cluster: w.Place.Cluster,
		Job: fmt.Sprint(v.Job), Node: w.Place.Node, Bind: w.Place.Bind.String(), Threads: os.Getenv("GOMAXPROCS"), Tunables: os.Getenv("GLIBC_TUNABLES"),
	})
	return g, func() { _ = node.Close() }, nil
}

// train takes steps until a worker is asked to stop, like a run.
func train(ctx context.Context, w *Worker) error {
	g, end, err := meet(w)
	if err != nil {
		return err
	}
	defer end()
	for step := 1; ; step++ {
		stop := []int64{0}
		if w.Stop().Err() != nil {
			stop[0] = 1
		}
		if err := collective.AllReduce(ctx, g, stop, collective.Max); err != nil {
			TellLost(w.Events, g.Rank(), err)
			w.DumpFlight()
			return err
		}
		w.Pulse.Stepped(trainer.StepEvent{})
		if stop[0] > 0 {
			w.Events.Emit(&event.Stopped{Steps: step})
			return trainer.ErrStopped
		}
	}
}

// unless is train except in one worker, which returns.
func unless(ctx context.Context, w *Worker, local int) error {
	if w.Place.Local == local {
		return nil
	}
	return train(ctx, w)
}

// launchTrain is a launcher whose workers play "tethered".
func launchTrain(ctx context.Context) error {
	place := Local()
	c, err := place.Config(2, io.Discard)
	if err != nil {
		return err
	}
	return Crew{
		Workers: 2, Cores: 2, Place: c, Kinds: kindsOfTests(), Display: nowhere{},
		Environ: func(int) []string { return []string{envPart + "=tethered"} },
	}.Launch(ctx)
}

// linesWith returns the lines of a text that contain all of words.
func linesWith(text []string, words ...string) (found []string) {
	for _, line := range text {
		all := true
		for _, word := range words {
			all = all && strings.Contains(line, word)
		}
		if all {
			found = append(found, line)
		}
	}
	return found
}
