package data

import "math/bits"

// draws is a counter-based random generator: draw n is a function of (seed, stream,
// n), independent of earlier draws. It is SplitMix64 (Steele, Lea, Flood 2014) with
// random access.
type draws struct{ key uint64 }

// newDraws returns the generator for one stream of a seed.
func newDraws(seed, stream uint64) draws {
	return draws{key: mix64(mix64(seed+golden64) ^ (stream+1)*golden64)}
}

// at returns draw n, 64 random bits.
func (d draws) at(n uint64) uint64 { return mix64(d.key + (n+1)*golden64) }

// below returns draw n as a number in 0 .. bound-1, for 0 < bound < 1<<31. Its bias is
// below bound/2^64 and is not corrected, so that one draw uses exactly one counter.
func (d draws) below(n uint64, bound int) int {
	hi, _ := bits.Mul64(d.at(n), uint64(bound))
	return int(hi)
}

// shuffle permutes s (Fisher-Yates). Step i uses draw i, so the permutation depends only on
// d and the length of s.
func shuffle[T any](s []T, d draws) {
	for i := len(s) - 1; i > 0; i-- {
		j := d.below(uint64(i), i+1)
		s[i], s[j] = s[j], s[i]
	}
}

// golden64 is 2^64 divided by the golden ratio, made odd: the increment of SplitMix64.
const golden64 = 0x9e3779b97f4a7c15

// mix64 is SplitMix64's finalizer (variant 13 of Stafford's mixers).
func mix64(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
