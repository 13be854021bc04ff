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
)

// A Listing is what a running job tells the other programs of its user on this
// machine, so that they find it. It holds the path of a key, and never the key.
type Listing struct {
	Launcher  Identity  `json:"launcher"` // the job of this machine has ended when it is dead
	Started   time.Time `json:"started"`
	Command   string    `json:"command"`   // for a person to read
	Directory string    `json:"directory"` // where it was started
	Cluster   string    `json:"cluster"`
	Job       string    `json:"job,omitempty"` // the number of the first view; "" before it is agreed
	KeyFile   string    `json:"key_file,omitempty"`
	Out       string    `json:"out,omitempty"` // directory of checkpoints and weights
	Nodes     int       `json:"nodes"`         // machines of the job
	Node      string    `json:"node"`          // what the job calls this launcher
	Workers   []Listed  `json:"workers"`       // of this machine
}

// Listed is one worker of a Listing.
type Listed struct {
	Local   int      `json:"local"`
	Gossip  string   `json:"gossip,omitempty"` // ADDRESS:PORT, "" until it listens
	Process Identity `json:"process"`
}

// A Registration is the Listing of a job of this process, in a file of its own.
// Its methods are not safe for concurrent use.
type Registration struct {
	dir, name string
}

// Register writes a listing to the user's registry, where [Listings] finds it:
// $XDG_RUNTIME_DIR/ringtrain, or else a directory of the user in the one for
// temporary files. Both are refused where another user could write to them, and
// only the user can read them. Who registers must call Remove.
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
			_, _ = listingsIn(dir) // which removes those of dead launchers
			return r, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// Update puts l in the place of what was registered before. A reader sees the
// one or the other.
func (r *Registration) Update(l Listing) error {
	text, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("launch: list the job: %w", err)
	}
	dir, err := openPrivate(r.dir)
	if err != nil {
		return fmt.Errorf("launch: list the job: %w", err)
	}
	defer func() { _ = dir.Close() }()
	err = dir.WriteFile(r.name+pendingSuffix, text, 0o600)
	if err == nil {
		err = dir.Rename(r.name+pendingSuffix, r.name+listingSuffix)
	}
	if err != nil {
		_ = dir.Remove(r.name + pendingSuffix)
		return fmt.Errorf("launch: list the job in %s: %w", r.dir, err)
	}
	return nil
}

// Remove takes the listing away.
func (r *Registration) Remove() error {
	if err := os.Remove(filepath.Join(r.dir, r.name+listingSuffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("launch: %w", err)
	}
	return nil
}

// Listings are the jobs of this user that run on this machine, the oldest
// first. Those whose launcher has died without a word are removed. An error says
// which part of the registry could not be read; what could be is returned too.
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

// Files of the registry.
const (
	listingSuffix = ".json"
	pendingSuffix = ".new"      // is becoming a listing
	pendingTime   = time.Minute // and after this, never will
)

// listingsIn reads one directory of the registry, and tidies it up.
func listingsIn(path string) ([]Listing, error) {
	dir, err := openPrivate(path)
	if err != nil {
		return nil, fmt.Errorf("launch: read the list of jobs: %w", err)
	}
	defer func() { _ = dir.Close() }()
	files, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("launch: read the list of jobs: %w", err)
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
			continue // gone by now, or of another version
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

// registryDirs are where this process may list jobs, best first.
func registryDirs() []string {
	var dirs []string
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) && ownedByUser(dir) {
		dirs = append(dirs, filepath.Join(dir, "ringtrain"))
	}
	name := "ringtrain-jobs"
	if uid := os.Geteuid(); uid >= 0 { // Windows has a directory for each user
		name += "-" + strconv.Itoa(uid)
	}
	return append(dirs, filepath.Join(os.TempDir(), name))
}

// registryElsewhere are where another process of this user may list jobs:
// services and batch systems do not set the variable that login shells have.
func registryElsewhere() []string {
	dir := filepath.Join("/run/user", strconv.Itoa(os.Geteuid()))
	if os.Getenv("XDG_RUNTIME_DIR") != "" || !ownedByUser(dir) {
		return nil
	}
	return []string{filepath.Join(dir, "ringtrain")}
}

// makePrivate makes a directory that only this user can read, unless it is there.
func makePrivate(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("launch: list the job: %w", err)
	}
	return nil
}

// openPrivate opens a directory that must be this user's alone. Others can put
// something in its place, a link or a directory of theirs, where they may write
// beside it: that is an error, and what is opened stays what was checked.
func openPrivate(path string) (*os.Root, error) {
	seen, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !seen.IsDir() {
		return nil, fmt.Errorf("%s is not a directory: remove it", path)
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
		return nil, fmt.Errorf("%s was replaced while it was opened", path)
	}
	return dir, nil
}
