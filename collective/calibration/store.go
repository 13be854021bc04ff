package calibration

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"github.com/ringtrain/ringtrain/collective/userfiles"
)

// format identifies the format of the files, and what the choices mean. Change it when
// a change of the code makes old choices wrong.
const format = "ringtrain-calibration/8"

// mostFile is the most bytes that a file may have.
const mostFile = 64 << 10

// Kept is what a Store keeps for a number of ranks.
type Kept struct {
	Choices Choices `json:"choices"`
	Done    int     `json:"done"` // see Search.Done; less than Experiments if jobs are to measure more
}

// A Store keeps choices in the files of a directory, which need not exist yet. A file
// that cannot be read or does not fit is as good as none: ranks then measure again.
type Store struct {
	Dir     string // "" for none
	Host    Host
	Version string // of the program
}

// file is the content of a file. Key says where the choices are valid.
type file struct {
	Format string `json:"format"`
	Key    key    `json:"key"`
	Kept
}

type key struct {
	Host
	Ranks   int    `json:"ranks"` // on the host
	Version string `json:"version"`
}

// path returns the file for a number of ranks on this host.
func (s *Store) path(ranks int) string {
	text, _ := json.Marshal(s.key(ranks)) // cannot fail for this type
	sum := sha256.Sum256(text)
	return filepath.Join(s.Dir, "calibration-"+hex.EncodeToString(sum[:8])+".json")
}

func (s *Store) key(ranks int) key { return key{s.Host, ranks, s.Version} }

// Load returns the choices of this number of ranks, if the Store has them. It ignores
// files that another user owns or can write.
func (s *Store) Load(ranks int) (Kept, bool) {
	if s == nil || s.Dir == "" {
		return Kept{}, false
	}
	text, err := userfiles.Read(s.path(ranks), mostFile, 0o022)
	if err != nil {
		return Kept{}, false
	}
	var in file
	if json.Unmarshal(text, &in) != nil || in.Format != format || in.Key != s.key(ranks) || in.Choices.Check() != nil || in.Done < 0 {
		return Kept{}, false
	}
	return in.Kept, true
}

// Save keeps the choices of this number of ranks. Readers see the old file or the new
// one, never a part.
func (s *Store) Save(ranks int, k Kept) error {
	if s == nil || s.Dir == "" {
		return nil
	}
	return s.write(s.path(ranks), file{format, s.key(ranks), k})
}

// write writes a value to a file of the directory, as JSON.
func (s *Store) write(path string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return err
	}
	userfiles.Sweep(s.Dir, "calibration-*.tmp", "links-*.tmp")
	part := path + "." + rand.Text() + ".tmp"
	if err := os.WriteFile(part, append(text, '\n'), 0o644); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	if err := os.Rename(part, path); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return nil
}
