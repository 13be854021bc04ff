package cli

import (
	"errors"

	"github.com/ringtrain/ringtrain/bench"
)

// A size is a flag for a number of bytes, which may have a unit.
type size struct{ bytes *int }

// errSize is why a flag does not take a value as a size.
var errSize = errors.New("is no size")

// Set implements pflag.Value.
func (s size) Set(text string) error {
	bytes, err := bench.ParseSize(text)
	if err != nil {
		return errSize
	}
	*s.bytes = bytes
	return nil
}

// String implements pflag.Value. help calls it on the zero value, too.
func (s size) String() string {
	if s.bytes == nil || *s.bytes == 0 {
		return ""
	}
	return bench.FormatSize(*s.bytes)
}

// Type implements pflag.Value.
func (s size) Type() string { return "size" }
