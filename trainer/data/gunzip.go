package data

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// deflateRatio is the largest number of bytes that one compressed byte can produce: a
// match of 258 bytes takes at least two bits.
const deflateRatio = 1032

// errGarbage is in the chain of every error about unexpected bytes after gzip data.
var errGarbage = errors.New("trailing garbage: after the gzip data there is something other than more gzip data or zeros")

var gzipMagic = []byte{0x1f, 0x8b}

// gunzip reads what gzip -t accepts: consecutive gzip members, then any number of zeros,
// with which tapes and block devices pad files.
type gunzip struct {
	from   *bufio.Reader
	member *gzip.Reader
	err    error // ends reading; io.EOF if the data is intact
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
		switch {
		case err == io.EOF:
			err = g.next()
		case errors.Is(err, io.ErrUnexpectedEOF):
			err = fmt.Errorf("%w: the gzip data ends early", errTruncated)
		}
		if g.err = err; n > 0 {
			return n, nil
		}
	}
	return 0, g.err
}

// next starts the next member. If there is none, it checks that only zeros follow and
// returns io.EOF.
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

// zeros reads the rest and returns io.EOF if it consists of zeros.
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
