package userfiles

import (
	"os"
	"path/filepath"
	"time"
)

// staleAge is the age of a temporary file that no process still writes.
const staleAge = time.Hour

// Sweep removes the files of dir that match one of the patterns, as of filepath.Match, and
// have not changed for an hour. Killed processes leave temporary files behind. Names must
// not be used again, because another process could then lose a new file. What cannot be
// removed stays.
func Sweep(dir string, patterns ...string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		for _, p := range patterns {
			if match, _ := filepath.Match(p, e.Name()); match && stale(e) {
				_ = os.Remove(filepath.Join(dir, e.Name()))
			}
		}
	}
}

func stale(e os.DirEntry) bool {
	info, err := e.Info()
	return err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > staleAge
}
