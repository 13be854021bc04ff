package job

import (
	"fmt"
	"io"

	"github.com/ringtrain/ringtrain/trainer/data"
)

// A Cache is the directory of generated data and compiled kernels: the user's cache
// directory, or another if that cannot be used. Methods of a nil Cache do nothing.
type Cache struct {
	Stderr io.Writer // receives a notice if it is another directory
	Quiet  bool      // no notice, because another process of the job writes it

	dir string // "" for the user's cache directory
}

// Prepare finds the directory of a file in the cache or, with "", the directory for new
// files. It returns no error: opening a file in the cache does.
func (c *Cache) Prepare(name string) {
	if c == nil {
		return
	}
	cache, err := data.OpenCache()
	if err != nil {
		return
	}
	instead := cache.Instead
	if name != "" {
		_, instead = cache.Find(name)
	}
	if instead == nil || c.dir != "" {
		return
	}
	c.dir = cache.Dir
	if !c.Quiet {
		fmt.Fprintf(c.Stderr, "ringtrain: keeping the cache in %s, because your cache directory cannot be used: %v\n", cache.Dir, instead)
	}
}

// Environ returns the environment variables by which workers use the same directory.
func (c *Cache) Environ() []string {
	if c == nil || c.dir == "" {
		return nil
	}
	return []string{data.EnvCache + "=" + c.dir}
}
