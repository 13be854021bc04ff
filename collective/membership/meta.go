package membership

import (
	"fmt"

	"github.com/hashicorp/memberlist"

	"github.com/ringtrain/ringtrain/collective"
)

// metaVersion is the first byte of a meta. A process ignores others' versions.
const metaVersion = 1

// encodeMeta packs what others must know of c into the bytes that gossip
// carries with its name. Addresses that do not fit are left out from the end:
// they are listed best first.
func encodeMeta(c candidate) []byte {
	for {
		w := &writer{}
		w.byte(metaVersion)
		w.num(uint64(c.Nodes))
		w.member(c.Member)
		if len(w.b) <= memberlist.MetaMaxSize || len(c.Addrs) == 0 {
			return w.b
		}
		c.Addrs = c.Addrs[:len(c.Addrs)-1]
	}
}

// decodeMeta is the inverse of encodeMeta.
func decodeMeta(b []byte) (candidate, error) {
	r := &reader{b: b}
	if v := r.byte(); r.err == nil && v != metaVersion {
		return candidate{}, fmt.Errorf("%w: meta of version %d, not %d", errWire, v, metaVersion)
	}
	c := candidate{Nodes: int(r.num(maxNodes)), Member: r.member()}
	if err := r.done(); err != nil {
		return candidate{}, fmt.Errorf("meta: %w", err)
	}
	return c, nil
}

// identify returns the process behind a name that gossip brings, or an error if
// it is none of ours.
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

// visible is m as others will see it: without the addresses that do not fit.
func visible(m collective.Member, nodes int) (candidate, []byte, error) {
	meta := encodeMeta(candidate{m, nodes})
	if len(meta) > memberlist.MetaMaxSize {
		return candidate{}, nil, fmt.Errorf("%w: the names of %s take too much room", ErrConfig, m.Name)
	}
	c, err := decodeMeta(meta)
	if err != nil {
		return candidate{}, nil, fmt.Errorf("%w: member %q: %w", ErrConfig, m.Name, err)
	}
	return c, meta, nil
}
