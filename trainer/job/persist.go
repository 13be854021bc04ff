package job

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// How long, and how often, the last checkpoint and the trained weights are tried
// again when they cannot be written.
const (
	retryTime  = time.Minute
	retryFirst = time.Second     // wait before the first retry; each wait doubles
	retryMost  = 8 * time.Second // the longest wait
)

// A persister writes the files that a training leaves behind. When one cannot be
// written it tries again for retryTime, since somebody may free space, and then
// in another directory, if there is one.
type persister struct {
	dir, fallback string          // fallback is "" for none
	quit          <-chan struct{} // closed when nobody waits for retries; nil: never
	events        event.Sink
	pulse         *crew.Pulse // may be nil

	until time.Time // the end of all retries; zero until something has failed
	lost  []string  // what was given up, in the user's words
	cause error     // of the first loss
}

// write calls attempt with a directory until it succeeds, and returns the
// directory. What is given up is remembered as what.
func (p *persister) write(ctx context.Context, what, name string, step int, attempt func(dir string) error) (dir string, ok bool) {
	err := attempt(p.dir)
	if err != nil && mayPass(err) {
		err = p.retry(ctx, name, step, err, attempt)
		if err != nil && p.fallback != "" {
			again := attempt(p.fallback)
			if again == nil {
				return p.fallback, true
			}
			err = fmt.Errorf("%w; --out-fallback: %w", err, again)
		}
	}
	if err != nil {
		p.lose(what, name, step, err)
		return "", false
	}
	return p.dir, true
}

// insteadOf is where a file should have been that was written to dir, "" if that
// is where it is.
func (p *persister) insteadOf(dir, name string) string {
	if dir == p.dir {
		return ""
	}
	return filepath.Join(p.dir, name)
}

// retry calls attempt until it succeeds, the time is over, or nobody waits any
// longer.
func (p *persister) retry(ctx context.Context, name string, step int, err error, attempt func(dir string) error) error {
	now := time.Now()
	if p.until.IsZero() {
		p.until = now.Add(retryTime)
	}
	if !now.Before(p.until) {
		return err
	}
	p.events.Emit(&event.SaveRetry{Path: filepath.Join(p.dir, name), Step: step, Error: err.Error(), Until: p.until.Round(time.Second)})
	p.pulse.Retrying(p.until)
	defer p.pulse.Retrying(time.Time{})
	timer := time.NewTimer(0)
	defer timer.Stop()
	for wait := retryFirst; time.Now().Before(p.until); wait = min(2*wait, retryMost) {
		timer.Reset(min(wait, time.Until(p.until)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return err
		case <-p.quit:
			return err
		}
		if err = attempt(p.dir); err == nil || !mayPass(err) {
			return err
		}
	}
	return err
}

// lose tells of a file that could not be written, and remembers what it is.
func (p *persister) lose(what, name string, step int, err error) {
	p.events.Emit(&event.CheckpointFailed{Path: filepath.Join(p.dir, name), Step: step, Error: err.Error(), Last: true})
	p.lost = append(p.lost, what)
	if p.cause == nil {
		p.cause = err
	}
}

// err says what was lost, nil if nothing was.
func (p *persister) err() error {
	if len(p.lost) == 0 {
		return nil
	}
	return fmt.Errorf("lost %s: %w", strings.Join(p.lost, " and "), p.cause)
}

// mayPass reports whether an error is the system's, such as a full disk, and not
// about what was to be written.
func mayPass(err error) bool {
	var system syscall.Errno
	return errors.As(err, &system)
}
