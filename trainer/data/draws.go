package data

import "math/bits"

// draws is a counter-based random generator: the n-th draw is a function of
// (seed, stream, n), so no draw depends on how many went before it. It is
// SplitMix64 (Steele, Lea, Flood 2014) with random access.
type draws struct{ key uint64 }

// newDraws returns the generator of one stream of a seed.
func newDraws(seed, stream uint64) draws {
	return draws{key: mix64(mix64(seed+golden64) ^ (stream+1)*golden64)}
}

// at returns the n-th 64 random bits.
func (d draws) at(n uint64) uint64 { return mix64(d.key + (n+1)*golden64) }

// below returns draw n as a number in 0 .. bound-1, 0 < bound < 1<<31. Its bias
// is under bound/2^64 and is not corrected, so that one draw costs one counter.
func (d draws) below(n uint64, bound int) int {
	hi, _ := bits.Mul64(d.at(n), uint64(bound))
	return int(hi)
}

// golden64 is 2^64 divided by the golden ratio, made odd: SplitMix64's step.
const golden64 = 0x9e3779b97f4a7c15

// mix64 is SplitMix64's finalizer (variant 13 of Stafford's mixers).
func mix64(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
