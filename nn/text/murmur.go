package text

import "encoding/binary"

// StringID returns spaCy's id of a string: 0 for the empty one, a small number for the names
// that spaCy knows, such as 380 for "PERSON", and otherwise a hash.
func StringID(s string) uint64 {
	if s == "" {
		return 0
	}
	if id, ok := symbol(s); ok {
		return id
	}
	return murmur64A(s, 1)
}

// murmur64A is MurmurHash64A (Appleby, 2008; public domain).
func murmur64A(s string, seed uint64) uint64 {
	const m, r = 0xc6a4a7935bd1e995, 47
	h := seed ^ uint64(len(s))*m
	for ; len(s) >= 8; s = s[8:] {
		k := binary.LittleEndian.Uint64([]byte(s[:8])) * m
		h = (h ^ (k^k>>r)*m) * m
	}
	if len(s) > 0 {
		var tail [8]byte
		copy(tail[:], s)
		h = (h ^ binary.LittleEndian.Uint64(tail[:])) * m
	}
	h = (h ^ h>>r) * m
	return h ^ h>>r
}
