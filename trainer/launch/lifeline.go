package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
)

// EnvLifeline is the environment variable that tells a worker the number of the
// file descriptor its lifeline is.
const EnvLifeline = "RINGTRAIN_LIFELINE"

// ErrLauncherGone is the cause of a context whose launcher has died.
var ErrLauncherGone = errors.New("launch: the launcher is gone")

// Lifeline returns a copy of parent that is cancelled, with ErrLauncherGone as
// its cause, as soon as the launcher of this process no longer exists. Where no
// launcher gave this process a lifeline, it only follows parent.
//
// The first call takes the lifeline: it removes the variable from the
// environment and keeps the descriptor from child processes, which could not
// tell it from any other. Later calls find none. The caller must call stop,
// which cancels the context and returns when nothing of the watch is left.
//
// An error means that the variable names no pipe: the process was started by
// something that passed the variable on but not the descriptor.
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
		return nil, nil, fmt.Errorf("launch: %s=%q is no file descriptor from 3 on: unset it, or start this process by the launcher", EnvLifeline, value)
	}
	pipe, err := takeLifeline(fd)
	if err != nil {
		return nil, nil, fmt.Errorf("launch: %s=%d: %w: unset it, or pass the descriptor on", EnvLifeline, fd, err)
	}
	ctx, stop = watchLifeline(parent, pipe)
	return ctx, stop, nil
}

// watchLifeline cancels the context when pipe ends; it owns pipe.
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
		_ = pipe.Close() // ends the Read below
		<-over
	}
}

// launcherGone blocks until the other end of pipe is closed (true) or this one
// is (false). Nothing is ever written to a lifeline; what comes is ignored.
func launcherGone(pipe *os.File) bool {
	var buf [16]byte
	for {
		if _, err := pipe.Read(buf[:]); err != nil {
			return !errors.Is(err, os.ErrClosed)
		}
	}
}
