package job

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/ringtrain/ringtrain/trainer/checkpoint"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// Saving says which files a job writes, and which it begins with.
type Saving struct {
	// Dir receives the weights on every machine, and checkpoints on the machine of rank 0.
	// "" is the directory of Resume; without that nothing is written.
	Dir      string
	Fallback string // receives the last checkpoint and the weights if Dir fails for a minute; "" for none
	Resume   string // directory of the checkpoint to resume from; "" to start from step 0
	Init     string // file of weights to start from, or directory that has one; "" for random weights
	Every    int    // steps between checkpoints; 0 for one at the end
	Keep     int    // number of checkpoints to keep, the newest; 0 for all
	Force    bool   // take over the locks of a job on another machine that no longer runs, also that of Gradients.ServerDir
	Require  bool   // fail as soon as a checkpoint cannot be written
}

// check reports the first mistake in f alone.
func (f *Saving) check() error {
	out := f.Dir != "" || f.Resume != ""
	switch {
	case f.Every < 0:
		return fmt.Errorf("--checkpoint-every must be at least 1, not %d", f.Every)
	case f.Keep < 0:
		return fmt.Errorf("--keep must be at least 1, or 0 for all, not %d", f.Keep)
	case !out && (f.Every > 0 || f.Fallback != "" || f.Require):
		return errors.New("--checkpoint-every, --keep, --out-fallback and --require-checkpoint need --out: say where checkpoints go")
	case f.Fallback != "" && filepath.Clean(f.Fallback) == filepath.Clean(cmp.Or(f.Dir, f.Resume)):
		return errors.New("--out-fallback is the directory of --out: use another one, preferably on another disk")
	}
	return nil
}

// checkResumeDir fails early if there is no checkpoint to resume from. With several
// machines only one needs it, and we do not know which yet.
func (f *Saving) checkResumeDir(nodes int) error {
	if f.Resume == "" || nodes > 1 {
		return nil
	}
	steps, err := checkpoint.Steps(f.Resume)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("--resume %s: there is no such directory; give the --out of the training to resume", f.Resume)
	case err != nil:
		if info, bad := os.Stat(f.Resume); bad == nil && !info.IsDir() {
			return fmt.Errorf("--resume %s is a file; give the directory that contains the checkpoints", f.Resume)
		}
		return fmt.Errorf("--resume: %w", err)
	case len(steps) == 0:
		return fmt.Errorf("--resume %s contains no checkpoint (a file such as %s)", f.Resume, checkpoint.FileName(50))
	}
	return nil
}

// A Dir is a directory that a job writes to, and its flag.
type Dir struct{ Flag, Path string }

// dirs returns the directories that a run writes to.
func (f *Saving) dirs() []Dir {
	var dirs []Dir
	for _, d := range []Dir{{"--out", f.Dir}, {"--out-fallback", f.Fallback}} {
		if d.Path != "" {
			dirs = append(dirs, d)
		}
	}
	return dirs
}

// claimDirs creates the output directories and locks them until release is called. If
// this process starts only some workers of the job, the workers lock them later, when they
// know the job's number.
func (f *Saving) claimDirs(cluster string, alone bool) (release func(), err error) {
	for _, d := range f.dirs() {
		if err := PrepareDir(d.Path); err != nil {
			return nil, fmt.Errorf("%s %s: %w; choose another directory", d.Flag, d.Path, err)
		}
	}
	release = func() {}
	if alone {
		if release, err = LockDirs(f.dirs(), launch.LockOptions{Job: cluster, Force: f.Force}); err != nil {
			return nil, err
		}
	}
	if err := f.checkDirs(); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// checkDirs returns an error if a directory has checkpoints of another run, which
// would be mixed with the new ones, or weights that a new run would replace. A run may have
// checkpoints in both directories, and resume from the one with the newest.
func (f *Saving) checkDirs() error {
	from, _ := checkpoint.Steps(f.Resume)
	own := len(from) > 0 && slices.ContainsFunc(f.dirs(), func(d Dir) bool { return f.resumes(d.Path) })
	for _, d := range f.dirs() {
		steps, _ := checkpoint.Steps(d.Path)
		weights := f.weightsIn(d.Path)
		switch {
		case len(steps) == 0 && weights == "" || f.resumes(d.Path):
			continue
		case own && slices.Max(steps) > slices.Max(from):
			return fmt.Errorf("%s %s contains later checkpoints than --resume %s; resume those with --resume %s, or use another directory", d.Flag, d.Path, f.Resume, d.Path)
		case own:
			continue
		}
		holder, state, err := launch.HolderOf(d.Path)
		if err == nil && holder.Identity != launch.Self() && (state == launch.Alive || state == launch.Stopped) {
			return lockError(d, &launch.LockedError{Dir: d.Path, Holder: holder, State: state})
		}
		if len(steps) == 0 {
			return fmt.Errorf("%s %s contains %s, which this run would replace; use another directory, or move the file away", d.Flag, d.Path, weights)
		}
		if len(from) > 0 && slices.Max(steps) < slices.Max(from) {
			return fmt.Errorf("%s %s contains checkpoints, and --resume %s has later ones; if they are of one run, because %s was its --out-fallback, add --out-fallback %s; otherwise use another directory", d.Flag, d.Path, f.Resume, f.Resume, f.Resume)
		}
		return fmt.Errorf("%s %s contains checkpoints of an earlier run; resume that with --resume %s, or use another directory", d.Flag, d.Path, d.Path)
	}
	return nil
}

// weightsIn returns the name of a file of weights in a directory that a run from step 0 would
// replace: of an earlier run without its checkpoints, or of another program. "" is none. A run
// that resumes replaces its own.
func (f *Saving) weightsIn(dir string) string {
	if f.Resume != "" {
		return ""
	}
	for _, name := range []string{weightsFile, bestFile} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return name
		}
	}
	return ""
}

// resumes reports whether dir is the directory of Resume, by whatever path.
func (f *Saving) resumes(dir string) bool {
	out, err := os.Stat(dir)
	from, none := os.Stat(f.Resume)
	return err == nil && none == nil && os.SameFile(out, from)
}

// PrepareDir creates a directory and checks that files can be written there, so that
// mistakes surface before training starts. "" is no directory.
func PrepareDir(dir string) error {
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
