package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/ringtrain/ringtrain/trainer/checkpoint"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// addSaving adds the flags about files that a training writes and goes on from.
func (f *trainFlags) addSaving(flags *pflag.FlagSet) {
	flags.StringVar(&f.out, "out", "", "write the trained weights (model.safetensors) to `DIR` on every machine, and checkpoints (step-*.safetensors) on the machine of rank 0")
	flags.StringVar(&f.outFallback, "out-fallback", "", "write the last checkpoint and the weights to `DIR` if --out still fails after a minute of retries")
	flags.StringVar(&f.resume, "resume", "", "continue from the newest intact checkpoint in `DIR`; only one machine needs it (--out defaults to the same DIR)")
	flags.IntVar(&f.every, "checkpoint-every", 0, "write a checkpoint every `N` steps (default only at the end and when stopped)")
	flags.IntVar(&f.keep, "keep", 3, "keep the newest `N` checkpoints; 0 keeps all")
	flags.BoolVar(&f.force, "force", false, forceUsage)
	flags.BoolVar(&f.requireSave, "require-checkpoint", false, "fail as soon as a checkpoint cannot be written (default warn and continue; the last one is always required)")
}

// checkSaving is check for these flags.
func (f *trainFlags) checkSaving(given func(string) bool) error {
	out := f.out != "" || f.resume != ""
	switch {
	case given("resume") && f.resume == "":
		return errors.New("--resume is empty: name the directory of an earlier --out")
	case given("out") && f.out == "":
		return errors.New("--out is empty: name a directory, or leave it out")
	case given("out-fallback") && f.outFallback == "":
		return errors.New("--out-fallback is empty: name a directory, or leave it out")
	case given("checkpoint-every") && f.every < 1:
		return errors.New("--checkpoint-every must be at least 1")
	case f.keep < 0:
		return errors.New("--keep must be at least 1, or 0 for all")
	case !out && (given("checkpoint-every") || given("keep") || given("out-fallback") || f.requireSave):
		return errors.New("--checkpoint-every, --keep, --out-fallback and --require-checkpoint need --out: say where checkpoints go")
	case !out && f.force:
		return errors.New("--force needs --out: say which directory to take")
	case f.outFallback != "" && filepath.Clean(f.outFallback) == filepath.Clean(cmp.Or(f.out, f.resume)):
		return errors.New("--out-fallback is the directory of --out: name another, best on another disk")
	case f.resume != "" && f.faithful:
		return errors.New("--resume does not go with --faithful-accumulate, whose sum of gradients is in no checkpoint")
	}
	return nil
}

// checkResumeDir says early that there is nothing to go on from. Of several
// machines one needs a checkpoint, and which that is shows later.
func (f *trainFlags) checkResumeDir() error {
	if f.resume == "" || f.Nodes > 1 {
		return nil
	}
	steps, err := checkpoint.Steps(f.resume)
	switch {
	case err != nil:
		return fmt.Errorf("--resume %s: %w", f.resume, err)
	case len(steps) == 0:
		return fmt.Errorf("--resume %s: there is no whole checkpoint in it (%s and so on)", f.resume, checkpoint.FileName(50))
	}
	return nil
}

// A flagDir is a directory that a training writes to, and the flag that names it.
type flagDir struct{ flag, dir string }

// dirs are the directories that a training writes to.
func (f *trainFlags) dirs() []flagDir {
	var dirs []flagDir
	for _, d := range []flagDir{{"--out", f.out}, {"--out-fallback", f.outFallback}} {
		if d.dir != "" {
			dirs = append(dirs, d)
		}
	}
	return dirs
}

// takeDirs makes the directories that a training writes to, and takes them for
// this job, until release. Where this process does not start all workers, they
// take them, when they know which job it is.
func (f *trainFlags) takeDirs(alone bool) (release func(), err error) {
	for _, d := range f.dirs() {
		if err := prepareOut(d.dir); err != nil {
			return nil, fmt.Errorf("%s %s: %w", d.flag, d.dir, err)
		}
	}
	release = func() {}
	if alone {
		if release, err = lockDirs(f.dirs(), launch.LockOptions{Job: f.Cluster, Force: f.force}); err != nil {
			return nil, err
		}
	}
	if err := f.checkDirs(); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// checkDirs says that a directory holds another training, whose checkpoints
// would be mixed with those to come.
func (f *trainFlags) checkDirs() error {
	for _, d := range f.dirs() {
		steps, _ := checkpoint.Steps(d.dir)
		if d.dir == f.resume || len(steps) == 0 {
			continue
		}
		holder, state, err := launch.HolderOf(d.dir)
		if err == nil && holder.Identity != launch.Self() && (state == launch.Alive || state == launch.Stopped) {
			return lockError(d, &launch.LockedError{Dir: d.dir, Holder: holder, State: state})
		}
		return fmt.Errorf("%s %s: there are checkpoints of another training in it: go on from them with --resume %s, or name another directory", d.flag, d.dir, d.dir)
	}
	return nil
}

// prepareOut makes the directory for weights, so that a mistake shows before
// the training and not after it.
func prepareOut(dir string) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	probe, err := os.CreateTemp(dir, ".ringtrain-*")
	if err != nil {
		return err
	}
	name := probe.Name()
	if err := probe.Close(); err != nil {
		return err
	}
	return os.Remove(name)
}
