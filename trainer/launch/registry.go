package launch

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ringtrain/ringtrain/collective/userfiles"
)

// A Listing describes a running job to other programs of the same user on this machine.
// It contains the path of the job's key, never the key itself.
type Listing struct {
	Launcher  Identity  `json:"launcher"` // if it is dead, the job has ended on this machine
	Started   time.Time `json:"started"`
	Command   string    `json:"command"`   // for people
	Directory string    `json:"directory"` // working directory of the launcher
	Cluster   string    `json:"cluster"`
	Gossip    string    `json:"gossip,omitempty"` // name under which processes gossip; "" if it is Cluster
	Job       string    `json:"job,omitempty"`    // number of the first view; "" until it is agreed
	KeyFile   string    `json:"key_file,omitempty"`
	Out       string    `json:"out,omitempty"` // directory of checkpoints and weights
	Nodes     int       `json:"nodes"`         // machines in the job
	Node      string    `json:"node"`          // name of this launcher in the job
	Workers   []Listed  `json:"workers"`       // workers on this machine
}

// Listed describes one worker in a Listing.
type Listed struct {
	Local   int      `json:"local"`
	Gossip  string   `json:"gossip,omitempty"` // ADDRESS:PORT, "" until it listens
	Process Identity `json:"process"`
}

// A Registration is the Listing of a job of this process, in its own file. Its methods
// are not safe for concurrent use.
type Registration struct {
	dir, name string
}

// Register writes a listing to the user's registry, where [Listings] finds it:
// $XDG_RUNTIME_DIR/ringtrain, or else a directory of the user in the temporary directory.
// Only the user can read them. A directory to which another user can write is rejected.
// The caller must call Remove.
func Register(l Listing) (*Registration, error) {
	var number [4]byte
	_, _ = rand.Read(number[:]) // never fails, see crypto/rand
	name := strconv.Itoa(os.Getpid()) + "-" + hex.EncodeToString(number[:])
	var errs []error
	for _, dir := range registryDirs() {
		r := &Registration{dir: dir, name: name}
		err := makePrivate(dir)
		if err == nil {
			err = r.Update(l)
		}
		if err == nil {
			_, _ = listingsIn(dir) // removes the listings of dead launchers
			return r, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// Update replaces the listing atomically: a reader sees either the old one or
// the new one.
func (r *Registration) Update(l Listing) error {
	text, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("launch: registering the job: %w", err)
	}
	dir, err := openPrivate(r.dir)
	if err != nil {
		return fmt.Errorf("launch: registering the job: %w", err)
	}
	defer func() { _ = dir.Close() }()
	err = dir.WriteFile(r.name+pendingSuffix, text, 0o600)
	if err == nil {
		err = dir.Rename(r.name+pendingSuffix, r.name+listingSuffix)
	}
	if err != nil {
		_ = dir.Remove(r.name + pendingSuffix)
		return fmt.Errorf("launch: registering the job in %s: %w", r.dir, err)
	}
	return nil
}

// Remove deletes the listing.
func (r *Registration) Remove() error {
	if err := os.Remove(filepath.Join(r.dir, r.name+listingSuffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("launch: %w", err)
	}
	return nil
}

// Listings returns the jobs of this user that run on this machine, oldest first. It
// removes listings whose launcher has died. If a part of the registry cannot be read, it
// returns an error along with the rest.
func Listings() ([]Listing, error) {
	var all []Listing
	var errs []error
	for _, dir := range append(registryDirs(), registryElsewhere()...) {
		some, err := listingsIn(dir)
		all = append(all, some...)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	slices.SortStableFunc(all, func(a, b Listing) int {
		return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.Node, b.Node))
	})
	return all, errors.Join(errs...)
}

// Files in the registry.
const (
	listingSuffix = ".json"
	pendingSuffix = ".new"      // a listing being written
	pendingTime   = time.Minute // a pending file older than this is abandoned
)

// listingsIn reads one directory of the registry and removes stale files.
func listingsIn(path string) ([]Listing, error) {
	dir, err := openPrivate(path)
	if err != nil {
		return nil, fmt.Errorf("launch: reading the registry of jobs: %w", err)
	}
	defer func() { _ = dir.Close() }()
	files, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("launch: reading the registry of jobs: %w", err)
	}
	var all []Listing
	for _, file := range files {
		if strings.HasSuffix(file.Name(), pendingSuffix) {
			if info, err := file.Info(); err == nil && time.Since(info.ModTime()) > pendingTime {
				_ = dir.Remove(file.Name())
			}
			continue
		}
		if !file.Type().IsRegular() || !strings.HasSuffix(file.Name(), listingSuffix) {
			continue
		}
		var l Listing
		text, err := dir.ReadFile(file.Name())
		if err != nil || json.Unmarshal(text, &l) != nil {
			continue // just removed, or written by another version
		}
		switch l.Launcher.State() {
		case Dead:
			_ = dir.Remove(file.Name())
		case Alive, Stopped:
			all = append(all, l)
		}
	}
	return all, nil
}

// registryDirs returns the directories in which this process may register jobs,
// best first.
func registryDirs() []string {
	var dirs []string
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) && ownedByUser(dir) {
		dirs = append(dirs, filepath.Join(dir, "ringtrain"))
	}
	name := "ringtrain-jobs"
	if uid := os.Geteuid(); uid >= 0 { // Windows has a temporary directory for each user
		name += "-" + strconv.Itoa(uid)
	}
	return append(dirs, filepath.Join(os.TempDir(), name))
}

// registryElsewhere returns directories in which other processes of this user
// may register jobs: services and batch systems do not set the variable that
// login shells set.
func registryElsewhere() []string {
	dir := filepath.Join("/run/user", strconv.Itoa(os.Geteuid()))
	if os.Getenv("XDG_RUNTIME_DIR") != "" || !ownedByUser(dir) {
		return nil
	}
	return []string{filepath.Join(dir, "ringtrain")}
}

// ownedByUser reports whether a directory belongs to this user and no other user can
// write to it. The check matters for root, which may run with another user's environment.
func ownedByUser(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.IsDir() && userfiles.Own(info, 0o022)
}

// makePrivate creates a directory that only this user can access, unless it exists.
func makePrivate(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("launch: registering the job: %w", err)
	}
	return nil
}

// openPrivate opens a directory to which only this user has access. If others can write
// to the parent directory, they could replace it by a link or by their own directory.
// openPrivate detects that, and the result refers to the directory that was checked.
func openPrivate(path string) (*os.Root, error) {
	seen, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !seen.IsDir() {
		return nil, fmt.Errorf("%s is not a directory; remove it", path)
	}
	if err := checkPrivate(path, seen); err != nil {
		return nil, err
	}
	dir, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	if opened, err := dir.Stat("."); err != nil || !os.SameFile(seen, opened) {
		_ = dir.Close()
		return nil, fmt.Errorf("%s was replaced while it was being opened; try again", path)
	}
	return dir, nil
}

// checkPrivate returns an error if another user can read or change a directory.
func checkPrivate(path string, info fs.FileInfo) error {
	switch {
	case !userfiles.Own(info, 0):
		return fmt.Errorf("%s belongs to another user; have it removed", path)
	case !userfiles.Own(info, 0o077):
		return fmt.Errorf("%s is accessible to other users; run chmod 700 on it", path)
	}
	return nil
}
