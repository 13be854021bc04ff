package membership

import (
	"fmt"

	"github.com/hashicorp/memberlist"
)

// metaVersion is the first byte of a meta. In every version the number of machines
// and the member follow, and since version 2 the program's version, so that errors
// can name a process of another version. Every version also answers calls (see
// roll).
const metaVersion = 2

// saysVersion is the first format with the program's version.
const saysVersion = 2

// encodeMeta packs what others must know about c into the bytes that gossip carries
// with its name. If not all addresses fit, the last ones are dropped: they are
// listed best first.
func encodeMeta(c candidate) []byte {
	for {
		w := &writer{}
		w.byte(c.Format)
		w.num(uint64(c.Nodes))
		w.member(c.Member)
		w.wish(c.wish)
		if len(w.b) <= memberlist.MetaMaxSize || len(c.Addrs) == 0 {
			return w.b
		}
		c.Addrs = c.Addrs[:len(c.Addrs)-1]
	}
}

// decodeMeta is the inverse of encodeMeta. From another version's meta it reads
// what all versions have, so that errors can name the process.
func decodeMeta(b []byte) (candidate, error) { return decodeMetaAs(metaVersion, b) }

// decodeMetaAs is decodeMeta for a program whose own format is mine.
func decodeMetaAs(mine byte, b []byte) (candidate, error) {
	r := &reader{b: b}
	format, nodes := r.byte(), int(r.num(maxNodes))
	c := candidate{Member: r.member()}
	switch {
	case r.err == nil && format == mine:
		c.wish = r.wish()
	case r.err == nil && format >= saysVersion:
		c.Version = r.text()
		r.b = nil
	case r.err == nil && format == 0:
		r.fail("meta of version 0")
	}
	c.Format, c.Nodes = format, nodes
	if err := r.done(); err != nil {
		return candidate{}, fmt.Errorf("meta: %w", err)
	}
	return c, nil
}

// identify returns the process with a gossip name, or an error if it is not ours.
func identify(gossipName string, meta []byte) (candidate, error) {
	c, err := decodeMeta(meta)
	if err != nil {
		return candidate{}, err
	}
	if gossipName != peerOf(c.Member).gossipName() {
		return candidate{}, fmt.Errorf("%w: %q is not the name in its meta, %q", errWire, gossipName, peerOf(c.Member).gossipName())
	}
	return c, nil
}

// wish appends x without the number of machines, which encodeMeta writes.
func (w *writer) wish(x wish) {
	w.text(x.Version)
	w.num(uint64(x.NodeRank))
	w.text(x.Rank0)
	w.num(uint64(len(x.Same)))
	for _, s := range x.Same {
		w.text(s.Name)
		w.text(s.Value)
	}
}

func (r *reader) wish() wish {
	x := wish{Version: r.text(), NodeRank: int(r.num(maxNodes)), Rank0: r.text()}
	for range r.num(maxSame) {
		x.Same = append(x.Same, Setting{r.text(), r.text()})
	}
	return x
}

// visible returns m as others will see it, without the addresses that do not fit,
// and its meta.
func visible(m candidate) (candidate, []byte, error) {
	meta := encodeMeta(m)
	if len(meta) > memberlist.MetaMaxSize {
		return candidate{}, nil, fmt.Errorf("%w: the names and settings of %s take %d bytes, but gossip carries at most %d", ErrConfig, m.Name, len(meta), memberlist.MetaMaxSize)
	}
	c, err := decodeMeta(meta)
	if err != nil {
		return candidate{}, nil, fmt.Errorf("%w: member %q: %w", ErrConfig, m.Name, err)
	}
	return c, meta, nil
}
