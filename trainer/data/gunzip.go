package data

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// deflateRatio is the most bytes that a byte of compressed data can stand for: a
// match of 258 bytes takes two bits at least.
const deflateRatio = 1032

// errGarbage is in the chain of every error about a file with something behind
// its gzip data.
var errGarbage = errors.New("trailing garbage: what follows the gzip data is neither more of them nor zeros")

var gzipMagic = []byte{0x1f, 0x8b}

// gunzip reads what gzip -t accepts: gzip members one after the other, and then
// any number of zeros, which tapes and block devices pad files with.
type gunzip struct {
	from   *bufio.Reader
	member *gzip.Reader
	err    error // ends the reading; io.EOF if all was well
}

// newGunzip reads the header of the first member.
func newGunzip(from *bufio.Reader) (*gunzip, error) {
	z, err := gzip.NewReader(from)
	if err != nil {
		return nil, fmt.Errorf("%w: in the gzip header", short(err))
	}
	z.Multistream(false)
	return &gunzip{from: from, member: z}, nil
}

// Read implements io.Reader.
func (g *gunzip) Read(p []byte) (int, error) {
	for g.err == nil {
		n, err := g.member.Read(p)
		if err == io.EOF {
			err = g.next()
		}
		if g.err = err; n > 0 {
			return n, nil
		}
	}
	return 0, g.err
}

// next begins the next member. If there is none it makes sure that nothing but zeros
// follows, and returns io.EOF.
func (g *gunzip) next() error {
	if start, err := g.from.Peek(len(gzipMagic)); !bytes.Equal(start, gzipMagic) {
		if err != nil && err != io.EOF {
			return err
		}
		return zeros(g.from)
	}
	if err := g.member.Reset(g.from); err != nil {
		return fmt.Errorf("%w: in the header of a later gzip member", short(err))
	}
	g.member.Multistream(false)
	return nil
}

// zeros reads all that is left and returns io.EOF if it is zeros.
func zeros(r io.Reader) error {
	buffer := make([]byte, 4096)
	for {
		n, err := r.Read(buffer)
		if len(bytes.TrimLeft(buffer[:n], "\x00")) > 0 {
			return errGarbage
		}
		if err != nil {
			return err
		}
	}
}
