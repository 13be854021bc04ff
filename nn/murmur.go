package nn

import "math/bits"

// Constants of MurmurHash3_x64_128 (Appleby, 2011; public domain).
const (
	murmurC1 = 0x87c37b91114253d5
	murmurC2 = 0x4cf5ad432745937f
	murmurF1 = 0xff51afd7ed558ccd
	murmurF2 = 0xc4ceb9fe1a85ec53
)

// murmur returns MurmurHash3_x64_128 of the eight bytes of id, as four 32-bit words. The
// least significant word of each half comes first, as in Thinc's Ops.hash.
func murmur(id uint64, seed uint32) [4]uint32 {
	const length = 8
	h1 := uint64(seed) ^ bits.RotateLeft64(id*murmurC1, 31)*murmurC2 ^ length
	h2 := uint64(seed) ^ length
	h1 += h2
	h2 += h1
	h1, h2 = murmurFinish(h1), murmurFinish(h2)
	h1 += h2
	h2 += h1
	return [4]uint32{uint32(h1), uint32(h1 >> 32), uint32(h2), uint32(h2 >> 32)}
}

func murmurFinish(h uint64) uint64 {
	h = (h ^ h>>33) * murmurF1
	h = (h ^ h>>33) * murmurF2
	return h ^ h>>33
}
