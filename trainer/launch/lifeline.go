package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
)

// EnvLifeline is the environment variable that tells a worker the file descriptor of
// its lifeline.
const EnvLifeline = "RINGTRAIN_LIFELINE"

// ErrLauncherGone is the cause of a context that was cancelled because the launcher died.
var ErrLauncherGone = errors.New("launch: the launcher is gone")

// Lifeline returns a copy of parent that is cancelled, with ErrLauncherGone as its cause,
// as soon as the launcher of this process no longer exists. Without a launcher it only
// follows parent.
//
// The first call takes the lifeline: it removes the environment variable, and keeps the
// descriptor from child processes, which could not recognise it. Later calls find no
// lifeline. The caller must call stop, which cancels the context and waits until the
// watch has ended.
//
// An error means that the variable does not name a pipe: whatever started this process
// passed on the variable but not the descriptor.
func Lifeline(parent context.Context) (ctx context.Context, stop func(), err error) {
	value, set := os.LookupEnv(EnvLifeline)
	if !set {
		ctx, cancel := context.WithCancel(parent)
		return ctx, cancel, nil
	}
	if err := os.Unsetenv(EnvLifeline); err != nil {
		return nil, nil, fmt.Errorf("launch: remove %s: %w", EnvLifeline, err)
	}
	fd, err := strconv.Atoi(value)
	if err != nil || fd < 3 {
		return nil, nil, fmt.Errorf("launch: %s=%q is not a file descriptor of at least 3; unset it, or start this process with the launcher", EnvLifeline, value)
	}
	pipe, err := takeLifeline(fd)
	if err != nil {
		return nil, nil, fmt.Errorf("launch: %s=%d: %w; unset it, or pass the descriptor on", EnvLifeline, fd, err)
	}
	ctx, stop = watchLifeline(parent, pipe)
	return ctx, stop, nil
}

// watchLifeline cancels the context when pipe ends. It owns pipe.
func watchLifeline(parent context.Context, pipe *os.File) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	over := make(chan struct{})
	go func() {
		defer close(over)
		if launcherGone(pipe) {
			cancel(ErrLauncherGone)
		}
	}()
	return ctx, func() {
		cancel(nil)
		_ = pipe.Close() // ends the Read in launcherGone
		<-over
	}
}

// launcherGone blocks until the other end of pipe is closed (true) or this end is
// (false). Nothing is ever written to a lifeline; data is ignored.
func launcherGone(pipe *os.File) bool {
	var buf [16]byte
	for {
		if _, err := pipe.Read(buf[:]); err != nil {
			return !errors.Is(err, os.ErrClosed)
		}
	}
}
