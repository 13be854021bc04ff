package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"unicode"
	"unicode/utf8"
)

// Limits of a store, in bytes.
const (
	MaxKey   = 1024
	MaxValue = 64 << 20
)

// Any is the version to pass to Set if any version may be overwritten.
const Any = math.MaxUint64

// Errors of a Store.
var (
	// ErrNotFound means that the store has no such key.
	ErrNotFound = errors.New("no such key")
	// ErrClosed means that this process has closed the DB, Server or Client.
	ErrClosed = errors.New("the store is closed")
	// ErrRefused means that the store rejects a request, which did nothing. The same
	// request would be rejected again.
	ErrRefused = errors.New("refused")
)

// A Store is a map from keys to values. A key is 1 to [MaxKey] bytes of printable UTF-8,
// a value at most [MaxValue] bytes. The methods are safe for concurrent use.
type Store interface {
	// Get returns a value, which belongs to the caller, and its version. If there is no
	// such key, the error is ErrNotFound.
	Get(ctx context.Context, key string) (v Value, version uint64, err error)

	// Set stores a value if the key still has this version, 0 for a key that does not
	// exist, and returns the new version. Otherwise the error is a *VersionError, and
	// nothing changes. With version Any it overwrites whatever is there.
	//
	// Set returns once the value is on disk. The type of a key never changes, and
	// neither does the shape of a tensor: the error is then ErrRefused. After any other
	// error, Get tells whether the value was stored.
	Set(ctx context.Context, key string, v Value, version uint64) (uint64, error)

	// Keys returns the keys that begin with prefix, in byte order. It is not a snapshot:
	// if there are thousands, keys that are added meanwhile may be missing.
	Keys(ctx context.Context, prefix string) ([]string, error)
}

// A VersionError means that somebody else has updated a key since it was read.
type VersionError struct {
	Key        string
	Want, Have uint64 // the version passed to Set, and the key's; 0 if it does not exist
}

// Error names the key and both versions.
func (e *VersionError) Error() string {
	switch {
	case e.Have == 0:
		return fmt.Sprintf("%q does not exist, so it has no version %d: use version 0 to create it", e.Key, e.Want)
	case e.Want == 0:
		return fmt.Sprintf("%q exists, at version %d: get it and update that version", e.Key, e.Have)
	}
	return fmt.Sprintf("%q is at version %d, not %d: somebody else has updated it; get it again", e.Key, e.Have, e.Want)
}

// CheckKey returns ErrRefused, and why, if a Store cannot have this key.
func CheckKey(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("%w: a key must not be empty", ErrRefused)
	case len(key) > MaxKey:
		return fmt.Errorf("%w: a key must have at most %d bytes, not %d", ErrRefused, MaxKey, len(key))
	case !printable(key):
		return fmt.Errorf("%w: a key must be printable UTF-8, not %q", ErrRefused, key)
	}
	return nil
}

func printable(s string) bool {
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return utf8.ValidString(s)
}
