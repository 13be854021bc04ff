package calibration

import (
	"fmt"
	"math"
	"strings"
)

// Choices are how the ranks of a host carry out calls in memory that they share. All
// ranks of a host have the same.
type Choices struct {
	Small       int `json:"small"`         // most bytes that are shown with the call; more are staged
	Chunk       int `json:"chunk"`         // bytes staged at a time
	StringLeast int `json:"string_least"`  // minimum number of bytes that are staged by a string move; 0: none are
	StreamLeast int `json:"stream_least"`  // minimum number of bytes that are staged, or sent through a ring, with non-temporal stores, while other ranks' cores are far; 0: never
	RotateMost  int `json:"rotate_most"`   // most bytes of a call that is staged in different places in turn; 0: none are
	InPlaceStep int `json:"in_place_step"` // bytes folded at a time in place
	// PrefetchMost is the most bytes of a call that are fetched for writing before they are
	// shown with the call. Of a longer call, only the flag is. 0: nothing, not even the flag.
	PrefetchMost int `json:"prefetch_most"`

	// Vectors from ReadLeast to ReadMost bytes are read from the other process through
	// the kernel, ReadChunk bytes at a time. ReadMost 0: none are.
	ReadLeast int `json:"read_least"`
	ReadMost  int `json:"read_most"`
	ReadChunk int `json:"read_chunk"`

	// A rank that waits polls in Rounds of Polls each, then yields its core Yields
	// times, and then sleeps. Rounds and Yields are for ranks that have a core each.
	Polls  int `json:"polls"`
	Rounds int `json:"rounds"`
	Yields int `json:"yields"`
}

// The memory that ranks share has room for these, in bytes.
const (
	MostSmall = 16 << 10
	MostChunk = 256 << 10
)

// Stages is the number of chunks for which each rank has room.
const Stages = 4

// Default returns the choices of ranks that have measured nothing. None of them is far
// from the best on any processor that we know. So nothing is read through the kernel,
// which saves a seventh of the time on one of them and doubles it on another.
func Default(ranks int) Choices {
	c := Choices{
		Small: 8 << 10, Chunk: 64 << 10, StringLeast: 2 << 10, StreamLeast: 2 << 10, RotateMost: MostChunk / 2, InPlaceStep: 16 << 10, PrefetchMost: 1 << 10,
		ReadLeast: 4 << 20, ReadMost: 0, ReadChunk: 512 << 10,
		Polls: 250, Rounds: 8, Yields: 50,
	}
	if ranks == 2 {
		c.Chunk = 128 << 10
	}
	return c
}

// chunk returns the size of the chunks with which ranks begin. The stages of the ranks of
// one core fill its L2 cache. On an AMD EPYC (Zen 4, 1 MB), vectors of 256 KB to
// 4 MB then take two thirds of the time that they take with chunks of half the size. On Zen 3
// (512 KB), 8 MB take a quarter more with chunks of twice the size; on a Xeon (512 KB), two
// ranks take the same.
func (h *Host) chunk(ranks int) int {
	if h.Cache == 0 || h.Cores == 0 {
		return Default(ranks).Chunk
	}
	perCore := (ranks + h.Cores - 1) / h.Cores
	return bound(h.Cache/(Stages*perCore)&^(4<<10-1), 32<<10, MostChunk)
}

// A field is one of the Choices.
type field struct {
	name        string
	at          func(c *Choices) *int
	least, most int
	step        int  // the value is a multiple of it
	off         bool // 0 is possible, too
}

// mostSize is the largest size of a call that matters: 1 TiB, or what an int of 32 bits
// holds.
const mostSize = min(1<<40, math.MaxInt)

// fields lists the fields of Choices in their order.
var fields = [...]field{
	{name: "small", at: func(c *Choices) *int { return &c.Small }, least: 64, most: MostSmall, step: 64},
	{name: "chunk", at: func(c *Choices) *int { return &c.Chunk }, least: 16 << 10, most: MostChunk, step: 4 << 10},
	{name: "string-least", at: func(c *Choices) *int { return &c.StringLeast }, least: 1, most: 1 << 30, step: 1, off: true},
	{name: "stream-least", at: func(c *Choices) *int { return &c.StreamLeast }, least: 1, most: 1 << 30, step: 1, off: true},
	{name: "rotate-most", at: func(c *Choices) *int { return &c.RotateMost }, least: 1, most: MostChunk / 2, step: 1, off: true},
	{name: "in-place-step", at: func(c *Choices) *int { return &c.InPlaceStep }, least: 1 << 10, most: 1 << 30, step: 1 << 10},
	{name: "prefetch-most", at: func(c *Choices) *int { return &c.PrefetchMost }, least: 64, most: MostSmall, step: 64, off: true},
	{name: "read-least", at: func(c *Choices) *int { return &c.ReadLeast }, least: 64 << 10, most: mostSize, step: 1},
	{name: "read-most", at: func(c *Choices) *int { return &c.ReadMost }, least: 64 << 10, most: mostSize, step: 1, off: true},
	{name: "read-chunk", at: func(c *Choices) *int { return &c.ReadChunk }, least: 64 << 10, most: 64 << 20, step: 4 << 10},
	{name: "polls", at: func(c *Choices) *int { return &c.Polls }, least: 1, most: 2000, step: 1},
	{name: "rounds", at: func(c *Choices) *int { return &c.Rounds }, least: 1, most: 1000, step: 1},
	{name: "yields", at: func(c *Choices) *int { return &c.Yields }, least: 1, most: 10_000, step: 1},
}

// Words is the number of words that hold Choices.
const Words = len(fields)

// Put writes the choices to words, for processes of one host.
func (c Choices) Put(words *[Words]uint64) {
	for i := range fields {
		words[i] = uint64(*fields[i].at(&c))
	}
}

// Get reads what Put has written. It returns an error if a value is impossible.
func Get(words *[Words]uint64) (c Choices, err error) {
	for i := range fields {
		*fields[i].at(&c) = int(min(words[i], math.MaxInt)) // a 64-bit process may have written more
	}
	return c, c.Check()
}

// Check returns an error that names the first value that is impossible.
func (c Choices) Check() error {
	for i := range fields {
		if err := fields[i].check(*fields[i].at(&c)); err != nil {
			return err
		}
	}
	return nil
}

func (f *field) check(value int) error {
	switch {
	case f.off && value == 0:
	case value < f.least || value > f.most:
		return fmt.Errorf("%s must be from %s to %s, not %d", f.name, size(f.least), size(f.most), value)
	case value%f.step != 0:
		return fmt.Errorf("%s must be a multiple of %s, not %d", f.name, size(f.step), value)
	}
	return nil
}

// Reads reports whether a vector of the given number of bytes is read from the
// other process, if that is possible.
func (c *Choices) Reads(bytes int) bool { return c.ReadLeast <= bytes && bytes <= c.ReadMost }

// String returns the choices in the form that Parse accepts.
func (c Choices) String() string {
	var parts []string
	for i := range fields {
		parts = append(parts, fields[i].name+"="+size(*fields[i].at(&c)))
	}
	return strings.Join(parts, ",")
}

// size returns a number with a unit if that is exact, such as 128K.
func size(n int) string {
	if n == 0 {
		return "off"
	}
	return FormatSize(n)
}
