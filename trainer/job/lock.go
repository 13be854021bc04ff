package job

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ringtrain/ringtrain/collective/query"
	"github.com/ringtrain/ringtrain/trainer/checkpoint"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// LockDirs locks directories for a job until release is called, and removes files that
// killed processes of this machine left unfinished there.
func LockDirs(dirs []Dir, o launch.LockOptions) (release func(), err error) {
	var taken []*launch.Lock
	release = func() {
		for _, l := range taken {
			_ = l.Unlock() // a lock file that stays names this process, and is stale once it has ended
		}
	}
	for _, d := range dirs {
		l, err := launch.TakeLock(d.Path, o)
		if err != nil {
			release()
			return nil, lockError(d, err)
		}
		taken = append(taken, l)
	}
	for _, d := range dirs {
		_ = checkpoint.Sweep(d.Path, func(run string) bool { return launch.TagState(run) == launch.Dead }) // leftovers only take up space
	}
	return release, nil
}

// lockError explains why a directory cannot be locked, and what to do.
func lockError(d Dir, err error) error {
	var locked *launch.LockedError
	switch {
	case !errors.As(err, &locked):
		return fmt.Errorf("%s %s: %w", d.Flag, d.Path, err)
	case locked.State == launch.Unknown:
		return fmt.Errorf("%s %w: if no job writes there any more, add --force", d.Flag, err)
	}
	return fmt.Errorf("%s %w: wait until it ends, or name another directory", d.Flag, err)
}

// lockedBy reports whether a process holds the locks of all output directories.
func (f *Saving) lockedBy(id launch.Identity) bool {
	return !slices.ContainsFunc(f.dirs(), func(d Dir) bool {
		holder, _, err := launch.HolderOf(d.Path)
		return err != nil || holder.Identity != id
	})
}

// lockDirs locks the output directories for the job, once on each machine. Machines of
// one job may share a directory. If a lock is refused anywhere, all ranks fail.
func (r *rank) lockDirs(ctx context.Context) (release func(), err error) {
	f, dirs := &r.training.Spec.Saving, []Dir(nil)
	if r.leader && !r.locked {
		dirs = f.dirs()
	}
	lock := func() (release func(), err error) {
		return LockDirs(dirs, launch.LockOptions{Job: query.JobName(r.group.View().Job), Shared: true, Force: f.Force})
	}
	release, mine := lock()
	err = crew.Agree(ctx, r.group, mine)
	var told *crew.ToldError
	if errors.As(err, &told) {
		if mine != nil { // another machine of this job may meanwhile have replaced a stale lock that only it could judge
			release, mine = lock()
		}
		err = crew.AgreeUsage(ctx, r.group, mine)
	}
	if err != nil {
		if release != nil {
			release()
		}
		return nil, err
	}
	return release, nil
}
