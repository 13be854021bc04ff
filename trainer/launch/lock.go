package launch

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/ringtrain/ringtrain/collective/userfiles"
)

// LockName is the name of the lock file in a locked directory.
const LockName = ".ringtrain.lock"

// lockFormat is the value of a Holder's Format.
const lockFormat = "ringtrain-lock/1"

// A Holder is the content of a directory's lock, as JSON.
type Holder struct {
	Format   string    `json:"format"`
	Job      string    `json:"job"`
	Shared   bool      `json:"shared,omitempty"` // held by all processes of the job
	Taken    time.Time `json:"taken"`
	Identity           // of the process that wrote the lock
}

// String returns a form for messages: "job a1b2 (process 4711 on gpu-3, since
// 2026-11-22 09:12:44)".
func (h Holder) String() string {
	return fmt.Sprintf("job %s (%v, since %s)", h.Job, h.Identity, h.Taken.Format(time.DateTime))
}

// A LockedError means that a directory is in use by another job.
type LockedError struct {
	Dir    string
	Holder Holder
	State  State // of the holder: Alive, Stopped or Unknown
}

// Error names the holder.
func (e *LockedError) Error() string {
	state := ""
	if e.Holder.Format == "" {
		return fmt.Sprintf("%s may be in use: cannot understand its lock %s; delete that file if no job uses the directory", e.Dir, LockName)
	}
	switch e.State {
	case Stopped:
		state = ", which is stopped"
	case Unknown:
		state = "; cannot tell from here whether it still runs"
	}
	return fmt.Sprintf("%s is in use by %v%s", e.Dir, e.Holder, state)
}

// LockOptions configures a lock.
type LockOptions struct {
	Job string // name of the job, for people and for Shared
	// Shared allows other processes of the same Job, on this machine or another, to
	// hold the lock at the same time. All of them must set it, and no other job may
	// have the same name.
	Shared bool
	// Force breaks the lock of a holder whose state is Unknown. The lock of a live
	// process is never broken.
	Force bool
}

// A Lock allows this process to write to a directory, until Unlock.
type Lock struct {
	path string
	text []byte // content of the file; nil if another process of the job holds the lock
}

// TakeLock locks a directory for this process with a file named LockName in it, which
// also works on network file systems. It takes over the lock of a dead process. If the
// directory is in use, the error is a LockedError.
func TakeLock(dir string, o LockOptions) (*Lock, error) {
	path := filepath.Join(dir, LockName)
	text, err := json.Marshal(Holder{Format: lockFormat, Job: o.Job, Shared: o.Shared, Taken: time.Now().Round(time.Second), Identity: Self()})
	if err != nil {
		return nil, err
	}
	text = append(text, '\n')
	userfiles.Sweep(dir, LockName+".*.tmp")
	for {
		err := placeLock(path, text)
		if err == nil {
			return &Lock{path, text}, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		there, holder, err := readLock(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // just released
		}
		if err != nil {
			return nil, err
		}
		if o.Shared && holder.Shared && holder.Job == o.Job {
			return &Lock{path: path}, nil
		}
		if state := holder.State(); state != Dead && !(state == Unknown && o.Force) {
			return nil, &LockedError{Dir: dir, Holder: holder, State: state}
		}
		taken, err := takeOver(path, there, text)
		if errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("%s: another process is taking over its lock; try again", dir)
		}
		if err != nil {
			return nil, err
		}
		if taken {
			return &Lock{path, text}, nil
		}
	}
}

// Unlock releases the lock. If another process has broken the lock, Unlock
// leaves it alone.
func (l *Lock) Unlock() error {
	if l.text == nil {
		return nil
	}
	there, _, err := readLock(l.path)
	if err != nil || !bytes.Equal(there, l.text) {
		return err
	}
	return os.Remove(l.path)
}

// HolderOf returns the holder of a directory's lock, and the holder's state. Without a
// lock the error is fs.ErrNotExist.
func HolderOf(dir string) (Holder, State, error) {
	_, h, err := readLock(filepath.Join(dir, LockName))
	return h, h.State(), err
}

// readLock reads a lock. If its format is unknown, h is empty. It rejects anything but
// a regular file: reading a named pipe would block, and a dangling link would look
// like no lock.
func readLock(path string) (text []byte, h Holder, err error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, h, err
	}
	if !info.Mode().IsRegular() {
		return nil, h, fmt.Errorf("%s is not a regular file; remove it", path)
	}
	if text, err = os.ReadFile(path); err != nil {
		return nil, h, err
	}
	if json.Unmarshal(text, &h) != nil || h.Format != lockFormat {
		h = Holder{}
	}
	return text, h, nil
}

// placeLock creates the file at path atomically. If it exists, the error is fs.ErrExist.
func placeLock(path string, text []byte) (err error) {
	aside, err := tempFor(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(aside)) }()
	if err := os.WriteFile(aside, text, 0o644); err != nil {
		return err
	}
	linked := os.Link(aside, path)
	if linked == nil || errors.Is(linked, fs.ErrExist) {
		return linked
	}
	// This file system has no hard links. Other processes may see the lock empty
	// for a moment.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(path)
	}
	return err
}

// takeoverTime is the longest time a process may take to replace a lock. After that it
// must have been killed meanwhile.
const takeoverTime = 10 * time.Second

// takeOver replaces the lock, or guard, at path if its content still equals before. Only one of
// several processes does so, because only one can create the guard, a second file named for
// before. For the others the error is fs.ErrExist. If the process with the guard was killed,
// the guard is taken over in the same way.
func takeOver(path string, before, text []byte) (taken bool, err error) {
	guard, mine := guardOf(path, before), []byte(rand.Text())
	err = placeLock(guard, mine)
	if errors.Is(err, fs.ErrExist) {
		left, old := readGuard(guard)
		if !old {
			return false, err
		}
		if taken, err := takeOver(guard, left, mine); !taken {
			return false, cmp.Or(err, fs.ErrExist)
		}
	} else if err != nil {
		return false, err
	}
	defer func() {
		if now, _ := os.ReadFile(guard); bytes.Equal(now, mine) { // or it took so long that another process has the guard
			err = errors.Join(err, os.Remove(guard))
		}
	}()
	there, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(there, before) {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return false, err
	}
	aside, err := tempFor(path)
	if err != nil {
		return false, err
	}
	if err = os.WriteFile(aside, text, 0o644); err == nil {
		err = os.Rename(aside, path)
	}
	if err != nil {
		return false, errors.Join(err, os.Remove(aside))
	}
	return true, nil
}

// guardOf returns the path of the guard of the file at path while its content is before.
func guardOf(path string, before []byte) string {
	sum := sha256.Sum256(before)
	return fmt.Sprintf("%s.%x.takeover", path, sum[:4])
}

// readGuard reads a guard if it is too old to be in use. Content and age are those of one file,
// even if another process replaces it meanwhile.
func readGuard(path string) (content []byte, old bool) {
	f, err := os.Open(path)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || time.Since(info.ModTime()) <= takeoverTime {
		return nil, false
	}
	content, err = io.ReadAll(f)
	return content, err == nil
}

// tempFor creates an empty file next to path that everybody may read.
func tempFor(path string) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return "", err
	}
	err = errors.Join(f.Chmod(0o644), f.Close())
	return f.Name(), err
}
