package cli

import (
	"fmt"

	"github.com/ringtrain/ringtrain/trainer/data"
)

// prepareCache opens the cache for something that is in it or, with "", is to be
// written there. It tells the user if that is not in the user's cache directory.
// That there is no place for a cache at all is told by who needs one.
func (a *app) prepareCache(name string) {
	cache, err := data.OpenCache()
	if err != nil {
		return
	}
	instead := cache.Instead
	if name != "" {
		_, instead = cache.Find(name)
	}
	if instead == nil || a.cache != "" {
		return
	}
	a.cache = cache.Dir
	if !a.process.Follows() {
		fmt.Fprintf(a.stderr, "ringtrain: keeping the cache in %s, because your cache directory cannot be used: %v\n", cache.Dir, instead)
	}
}

// cacheEnviron tells workers which cache their launcher uses in place of the
// user's.
func (a *app) cacheEnviron() []string {
	if a.cache == "" {
		return nil
	}
	return []string{data.EnvCache + "=" + a.cache}
}
