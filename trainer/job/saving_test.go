package job

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/event"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// No other job may write to the directory of a running job, by whatever path or flag. Later
// jobs may not mix their checkpoints with those of the first.
func TestTwoJobsInOneDirectory(t *testing.T) {
	first, second := tinySpec(t), tinySpec(t)
	dir, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(dir, link))
	first.Saving = Saving{Dir: dir, Every: 2}
	refused := func(s Saving, want ...string) {
		second.Saving = s
		h, err := runError(t, t.Context(), second, Options{})
		var usage *crew.UsageError
		require.ErrorAs(t, err, &usage)
		for _, text := range want {
			require.ErrorContains(t, err, text)
		}
		require.Empty(t, h.all)
	}
	tried := 0
	h := &heard{on: func(e event.Event) {
		afterStep(1, func() { // no checkpoint is there yet
			refused(Saving{Dir: dir}, "--out "+dir+" is in use by job ringtrain-", "wait until it ends, or name another directory")
			refused(Saving{Dir: link}, "--out "+link+" is in use")
			refused(Saving{Dir: dir, Force: true}, "--out "+dir+" is in use")
			spare := t.TempDir()
			refused(Saving{Dir: spare, Fallback: dir}, "--out-fallback "+dir+" is in use")
			require.Empty(t, namesIn(t, spare), "the lock of the other directory is released")
			tried++
		})(e)
		afterStep(5, func() {
			refused(Saving{Resume: dir}, "--out "+dir+" is in use")
			tried++
		})(e)
	}}
	require.NoError(t, Run(t.Context(), first, Options{Display: h, Stderr: h}))
	require.Equal(t, 2, tried)
	require.Equal(t, 6, resultOf(t, h).Steps, "the first job does not notice")

	const another = " contains checkpoints of an earlier run; resume that with --resume "
	refused(Saving{Dir: dir}, "--out "+dir+another+dir+", or use another directory")
	refused(Saving{Dir: t.TempDir(), Fallback: dir}, "--out-fallback "+dir+another)
	second.Saving = Saving{Dir: t.TempDir()}
	run(t, second)
	refused(Saving{Dir: second.Saving.Dir, Resume: dir}, "--out "+second.Saving.Dir+another)
}

// writeLock writes the lock of a process.
func writeLock(t *testing.T, dir string, id launch.Identity) {
	text, err := json.Marshal(launch.Holder{Format: "ringtrain-lock/1", Job: "old", Identity: id})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, launch.LockName), text, 0o600))
}

// The lock of a dead process is replaced. That of another machine is too, with --force.
func TestLocksOfOthers(t *testing.T) {
	f := tinySpec(t)
	f.Saving.Dir = t.TempDir()
	dead := launch.Self()
	dead.Start++
	writeLock(t, f.Saving.Dir, dead)
	run(t, f)

	f.Saving.Dir = t.TempDir()
	elsewhere := dead
	elsewhere.Host += "2"
	writeLock(t, f.Saving.Dir, elsewhere)
	_, err := runError(t, t.Context(), f, Options{})
	require.ErrorContains(t, err, "--out "+f.Saving.Dir+" ")
	require.ErrorContains(t, err, ": if no job writes there any more, add --force")
	require.FileExists(t, filepath.Join(f.Saving.Dir, launch.LockName), "it is not ours")
	f.Saving.Force = true
	run(t, f)
	require.NoFileExists(t, filepath.Join(f.Saving.Dir, launch.LockName))

	require.NoError(t, os.WriteFile(filepath.Join(f.Saving.Dir, launch.LockName), []byte("not a lock"), 0o600))
	_, err = runError(t, t.Context(), f, Options{})
	require.ErrorContains(t, err, "--out "+f.Saving.Dir)
}

// If a directory has checkpoints of a running job, the error names that job and does not
// suggest to resume it.
func TestDirectoryOfALiveJob(t *testing.T) {
	f := tinySpec(t)
	f.Saving.Dir = t.TempDir()
	run(t, f)
	parent := launch.Identify(os.Getppid())
	writeLock(t, f.Saving.Dir, parent)
	require.ErrorContains(t, f.Saving.checkDirs(), "--out "+f.Saving.Dir+" is in use by job old (process ")
	writeLock(t, f.Saving.Dir, launch.Self())
	require.ErrorContains(t, f.Saving.checkDirs(), "resume that with --resume "+f.Saving.Dir)
}

// A run from step 0 replaces no weights, whoever wrote them. A run that resumes replaces its own.
func TestWeightsAreNotReplaced(t *testing.T) {
	for _, name := range []string{weightsFile, bestFile} {
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte("somebody's"), 0o600))
		second := tinySpec(t)
		second.Saving = Saving{Dir: dir}
		h, err := runError(t, t.Context(), second, Options{})
		var usage *crew.UsageError
		require.ErrorAs(t, err, &usage)
		require.ErrorContains(t, err, "--out "+dir+" contains "+name+", which this run would replace; use another directory, or move the file away")
		require.Empty(t, h.all)
		require.Equal(t, []string{name}, namesIn(t, dir), "the lock is released")
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, "somebody's", string(text))

		require.ErrorContains(t, (&Saving{Dir: t.TempDir(), Fallback: dir}).checkDirs(), "--out-fallback "+dir+" contains "+name)
		from := t.TempDir()
		require.NoError(t, os.WriteFile(stepFile(from, 20), nil, 0o600))
		require.NoError(t, (&Saving{Dir: dir, Resume: from}).checkDirs(), "machines without the checkpoint have the weights alone")
		require.NoError(t, (&Saving{Dir: dir, Resume: dir}).checkDirs())
	}
}

// If the last checkpoint of a run went to --out-fallback, resuming it without that flag
// says so, and does not advise to resume the older one.
func TestResumeFromTheForgottenFallback(t *testing.T) {
	out, fallback := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(stepFile(out, 20), nil, 0o600))
	require.NoError(t, os.WriteFile(stepFile(fallback, 60), nil, 0o600))
	require.ErrorContains(t, (&Saving{Dir: out, Resume: fallback}).checkDirs(), "add --out-fallback "+fallback)
	require.NoError(t, (&Saving{Dir: out, Fallback: fallback, Resume: fallback}).checkDirs())
}

// A job may write to the directory that it resumes from, by whatever path.
func TestResumeByAnotherPath(t *testing.T) {
	dir, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.WriteFile(stepFile(dir, 3), nil, 0o600))
	require.NoError(t, os.Symlink(dir, link))
	for _, path := range []string{dir, dir + "/", link} {
		require.NoError(t, (&Saving{Dir: dir, Resume: path}).checkDirs())
		require.NoError(t, (&Saving{Dir: path, Resume: dir}).checkDirs())
	}
	for _, other := range []string{"", t.TempDir(), filepath.Join(dir, "none")} {
		require.ErrorContains(t, (&Saving{Dir: dir, Resume: other}).checkDirs(), "--out "+dir+" contains checkpoints of an earlier run")
	}
}

// lockedBy is true only if the process holds the locks of all directories.
func TestLockedBy(t *testing.T) {
	out, spare := t.TempDir(), t.TempDir()
	f := Saving{Dir: out, Fallback: spare}
	require.True(t, (&Saving{}).lockedBy(launch.Self()), "there is nothing to lock")
	require.False(t, f.lockedBy(launch.Self()))
	release, err := LockDirs(f.dirs()[:1], launch.LockOptions{Job: "j"})
	require.NoError(t, err)
	require.False(t, f.lockedBy(launch.Self()), "only one of two")
	release()
	release, err = LockDirs(f.dirs(), launch.LockOptions{Job: "j"})
	require.NoError(t, err)
	require.True(t, f.lockedBy(launch.Self()))
	require.False(t, f.lockedBy(launch.Identify(os.Getppid())))
	release()
	require.False(t, f.lockedBy(launch.Self()))
}

// If one of several locks is refused, the others are released.
func TestLocksAreAllOrNothing(t *testing.T) {
	free, taken := t.TempDir(), t.TempDir()
	writeLock(t, taken, launch.Identify(os.Getppid()))
	release, err := LockDirs([]Dir{{"--out", free}, {"--out-fallback", taken}}, launch.LockOptions{Job: "j"})
	require.ErrorContains(t, err, "--out-fallback "+taken+" is in use by job old")
	require.Nil(t, release)
	require.Empty(t, namesIn(t, free))
	_, err = LockDirs([]Dir{{"--out", filepath.Join(free, "none")}}, launch.LockOptions{Job: "j"})
	require.ErrorContains(t, err, "--out "+filepath.Join(free, "none")+": ")
}

// PrepareDir creates an empty directory, or returns why it cannot.
func TestPrepareDir(t *testing.T) {
	require.NoError(t, PrepareDir(""))
	dir := filepath.Join(t.TempDir(), "a", "b")
	require.NoError(t, PrepareDir(dir))
	require.Empty(t, namesIn(t, dir))
	require.NoError(t, PrepareDir(dir), "it may be there already")
	file := emptyFile(t)
	require.ErrorContains(t, PrepareDir(file), "not a directory")
	require.ErrorContains(t, PrepareDir(filepath.Join(file, "under")), "not a directory")
	require.Error(t, PrepareDir(unwritable(t)))
}

// A directory to resume from must have a checkpoint, unless another machine may have it.
func TestCheckResumeDir(t *testing.T) {
	empty := t.TempDir()
	none := filepath.Join(empty, "none")
	for _, c := range []struct {
		dir   string
		nodes int
		want  string
	}{
		{"", 1, ""},
		{none, 2, ""},
		{empty, 2, ""},
		{none, 1, "--resume " + none + ": "},
		{empty, 1, "--resume " + empty + " contains no checkpoint (a file such as step-00000050.safetensors)"},
	} {
		err := (&Saving{Resume: c.dir}).checkResumeDir(c.nodes)
		if c.want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, c.want)
		}
	}
	require.NoError(t, os.WriteFile(stepFile(empty, 3), nil, 0o600))
	require.NoError(t, (&Saving{Resume: empty}).checkResumeDir(1), "its content is checked later")
}

// dirs lists the directories of the flags in use, and check finds flags that need others.
func TestSavingDirs(t *testing.T) {
	require.Empty(t, (&Saving{}).dirs())
	require.Equal(t, []Dir{{"--out", "a"}}, (&Saving{Dir: "a"}).dirs())
	require.Equal(t, []Dir{{"--out", "a"}, {"--out-fallback", "b"}}, (&Saving{Dir: "a", Fallback: "b"}).dirs())
	for want, s := range map[string]Saving{
		"":                               {},
		"--checkpoint-every must be":     {Dir: "a", Every: -1},
		"need --out: say where":          {Require: true},
		"need --out: say where checkpoi": {Fallback: "b"},
		"--out-fallback is the directo":  {Resume: "a", Fallback: "a/."},
	} {
		if err := s.check(); want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, want)
		}
	}
	require.NoError(t, (&Saving{Resume: "a", Every: 1, Force: true, Require: true}).check(), "--out is the directory of --resume")
}
