package launch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// LockName is the name of the lock in a directory that has one.
const LockName = ".ringtrain.lock"

// lockFormat is the value of a Holder's Format.
const lockFormat = "ringtrain-lock/1"

// A Holder is what the lock of a directory says, as JSON.
type Holder struct {
	Format   string    `json:"format"`
	Job      string    `json:"job"`
	Shared   bool      `json:"shared,omitempty"` // by all processes of the job
	Taken    time.Time `json:"taken"`
	Identity           // of the process that wrote the lock
}

// String is for messages: "job a1b2 (process 4711 on gpu-3, since 2026-11-22 09:12:44)".
func (h Holder) String() string {
	return fmt.Sprintf("job %s (%v, since %s)", h.Job, h.Identity, h.Taken.Format(time.DateTime))
}

// A LockedError says that a directory belongs to somebody else.
type LockedError struct {
	Dir    string
	Holder Holder
	State  State // of the holder: Alive, Stopped or Unknown
}

// Error names the holder.
func (e *LockedError) Error() string {
	state := ""
	if e.Holder.Format == "" {
		return fmt.Sprintf("%s may be in use: its lock %s cannot be read", e.Dir, LockName)
	}
	switch e.State {
	case Stopped:
		state = ", which is stopped"
	case Unknown:
		state = "; whether it still runs cannot be seen from here"
	}
	return fmt.Sprintf("%s is in use by %v%s", e.Dir, e.Holder, state)
}

// LockOptions are how a directory is locked.
type LockOptions struct {
	Job string // names the job, for people, and for Shared
	// Shared lets other processes of the same Job, of this machine or another, have
	// the directory at the same time. All of them must ask for it, and Job must be
	// a name that no other job has.
	Shared bool
	// Force breaks the lock of a holder whose state is Unknown. That of a process
	// seen alive is never broken.
	Force bool
}

// A Lock is a directory that this process may write to, until Unlock.
type Lock struct {
	path string
	text []byte // what the file says; nil: another process of the job holds the lock
}

// TakeLock locks a directory for this process, by a file named LockName in it,
// which works on file systems that machines share, too. A lock of a dead process
// is taken over. If the directory is in use, the error is a LockedError.
func TakeLock(dir string, o LockOptions) (*Lock, error) {
	path := filepath.Join(dir, LockName)
	text, err := json.Marshal(Holder{Format: lockFormat, Job: o.Job, Shared: o.Shared, Taken: time.Now().Round(time.Second), Identity: Self()})
	if err != nil {
		return nil, err
	}
	text = append(text, '\n')
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
			continue // it was just given up
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
			return nil, fmt.Errorf("%s: another process is taking it over just now", dir)
		}
		if err != nil {
			return nil, err
		}
		if taken {
			return &Lock{path, text}, nil
		}
	}
}

// Unlock gives the directory up. Whoever has broken the lock keeps it.
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

// HolderOf is who holds the lock of a directory, and whether that process lives.
// Without a lock the error is fs.ErrNotExist.
func HolderOf(dir string) (Holder, State, error) {
	_, h, err := readLock(filepath.Join(dir, LockName))
	return h, h.State(), err
}

// readLock reads a lock. If its format is unknown, h is empty. Reading a named
// pipe would block, and a link that leads nowhere would look like no lock.
func readLock(path string) (text []byte, h Holder, err error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, h, err
	}
	if !info.Mode().IsRegular() {
		return nil, h, fmt.Errorf("%s is not a regular file: remove it", path)
	}
	if text, err = os.ReadFile(path); err != nil {
		return nil, h, err
	}
	if json.Unmarshal(text, &h) != nil || h.Format != lockFormat {
		h = Holder{}
	}
	return text, h, nil
}

// placeLock makes the file at path, whole. If there is one, the error is
// fs.ErrExist.
func placeLock(path string, text []byte) (err error) {
	aside, err := asideOf(path)
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
	// This file system has no links. For a moment the lock can be seen empty.
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

// takeoverTime is how long a process may take to replace a lock: after that it
// was killed on the way.
const takeoverTime = 10 * time.Second

// takeOver replaces the lock at path if it still says what it said. Of several
// who try at once one does, because they exclude each other by another file; for
// those who find it there the error is fs.ErrExist.
func takeOver(path string, said, text []byte) (taken bool, err error) {
	guard := path + ".takeover"
	if info, err := os.Stat(guard); err == nil && time.Since(info.ModTime()) > takeoverTime {
		_ = os.Remove(guard)
	}
	f, err := os.OpenFile(guard, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(guard)) }()
	there, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(there, said) {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return false, err
	}
	aside, err := asideOf(path)
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

// asideOf makes an empty file beside path that all may read.
func asideOf(path string) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return "", err
	}
	err = errors.Join(f.Chmod(0o644), f.Close())
	return f.Name(), err
}
