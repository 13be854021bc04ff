package job

import (
	"fmt"
	"io"

	"github.com/ringtrain/ringtrain/trainer/data"
)

// A Cache is where generated data and compiled kernels are kept: in the user's cache
// directory, or elsewhere if that cannot be used. Its methods may be called on nil,
// which keeps nothing.
type Cache struct {
	Stderr io.Writer // is told if it is elsewhere
	Quiet  bool      // ... unless another process of the job says it

	dir string // where it is, if that is not the user's cache directory
}

// Prepare opens the cache for something that is in it or, with "", is to be written
// there. If there is no place for a cache at all, whoever needs one says so.
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

// Environ tells workers which cache their launcher uses in place of the user's.
func (c *Cache) Environ() []string {
	if c == nil || c.dir == "" {
		return nil
	}
	return []string{data.EnvCache + "=" + c.dir}
}
