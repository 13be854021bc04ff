package job

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// How long and how often a finalWriter retries.
const (
	retryTime  = time.Minute
	retryFirst = time.Second     // wait before the first retry; each wait doubles
	retryMost  = 8 * time.Second // the longest wait
)

// The files of a finalWriter, as errors name them.
const (
	lastCheckpoint = "the last checkpoint"
	trainedWeights = "the trained weights"
	bestWeights    = "the best weights"
)

// A finalWriter writes the last checkpoint and the trained weights, which a job must not
// lose. If the file system fails, it retries for retryTime, because the user may free
// space, and then writes to the fallback directory, if there is one.
type finalWriter struct {
	dir, fallback string          // fallback is "" for none
	quit          <-chan struct{} // closed to give up retries; nil: never
	events        event.Sink
	pulse         *crew.Pulse // may be nil

	until time.Time // the end of all retries; zero until something has failed
	lost  []string  // lastCheckpoint, trainedWeights, bestWeights
	cause error     // of the first loss
}

// write calls attempt with a directory until it succeeds, and returns that directory. If
// it gives up, it records what as lost.
func (w *finalWriter) write(ctx context.Context, what, name string, step int, attempt func(dir string) error) (dir string, ok bool) {
	err := attempt(w.dir)
	if err != nil && mayPass(err) {
		err = w.retry(ctx, name, step, err, attempt)
		if err != nil && w.fallback != "" {
			again := attempt(w.fallback)
			if again == nil {
				return w.fallback, true
			}
			err = fmt.Errorf("%w; --out-fallback: %w", err, again)
		}
	}
	if err != nil {
		w.lose(what, name, step, err)
		return "", false
	}
	return w.dir, true
}

// insteadOf returns the path that a file in dir should have had, or "" if dir is right.
func (w *finalWriter) insteadOf(dir, name string) string {
	if dir == w.dir {
		return ""
	}
	return filepath.Join(w.dir, name)
}

// retry calls attempt until it succeeds, fails for good, or retries end.
func (w *finalWriter) retry(ctx context.Context, name string, step int, err error, attempt func(dir string) error) error {
	now := time.Now()
	if w.until.IsZero() {
		w.until = now.Add(retryTime)
	}
	if !now.Before(w.until) {
		return err
	}
	w.events.Emit(&event.SaveRetry{Path: filepath.Join(w.dir, name), Step: step, Error: err.Error(), Full: isFull(err), Until: w.until.Round(time.Second)})
	w.pulse.Retrying(w.until)
	defer w.pulse.Retrying(time.Time{})
	timer := time.NewTimer(0)
	defer timer.Stop()
	for wait := retryFirst; time.Now().Before(w.until); wait = min(2*wait, retryMost) {
		timer.Reset(min(wait, time.Until(w.until)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return err
		case <-w.quit:
			return err
		}
		if err = attempt(w.dir); err == nil || !mayPass(err) {
			return err
		}
	}
	return err
}

// lose reports and records a file that could not be written.
func (w *finalWriter) lose(what, name string, step int, err error) {
	w.events.Emit(&event.CheckpointFailed{Path: filepath.Join(w.dir, name), Step: step, Error: err.Error(), Last: true})
	w.lost = append(w.lost, what)
	if w.cause == nil {
		w.cause = err
	}
}

// err returns an error that names the lost files, or nil if there are none.
func (w *finalWriter) err() error {
	if w == nil || len(w.lost) == 0 {
		return nil
	}
	return fmt.Errorf("lost %s: %w", enumeration(w.lost), w.cause)
}

// enumeration joins names: "a", "a and b", "a, b and c".
func enumeration(names []string) string {
	n := len(names) - 1
	if n < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:n], ", ") + " and " + names[n]
}

// mayPass reports whether an error comes from the system, such as a full disk, and may
// go away. Other errors are about the content of the file.
func mayPass(err error) bool {
	var system syscall.Errno
	return errors.As(err, &system)
}

// longWait is how long a rank waits for others to save before it says so.
const longWait = 3 * time.Second

// tellWait lets the first rank of a machine say that it waits for others to save, if that takes
// long. The caller calls end when the wait is over.
func tellWait(r *rank) (end func()) {
	if !r.leader || r.group.Size() == 1 || r.final == nil || r.final.err() != nil {
		return func() {}
	}
	over, teller := make(chan struct{}), sync.WaitGroup{}
	teller.Go(func() {
		select {
		case <-over:
		case <-time.After(longWait):
			e := &event.SaveWait{}
			if w := r.group.Flight().Waiting; w != nil && w.Cause == collective.LateToCall {
				e.Name = fmt.Sprintf("rank %d (%s)", w.Rank, r.group.View().Name(w.Rank))
			}
			r.events.Emit(e)
		}
	})
	return func() { close(over); teller.Wait() }
}
