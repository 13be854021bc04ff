package sgemm

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// exactFMA returns x·y + z rounded once, of finite numbers.
func exactFMA(x, y, z float32) float32 {
	wide := func(v float32) *big.Float { return new(big.Float).SetPrec(1000).SetFloat64(float64(v)) }
	p := new(big.Float).SetPrec(1000).Mul(wide(x), wide(y))
	sum := new(big.Float).SetPrec(1000).Add(p, wide(z))
	if sum.Sign() == 0 {
		return float32(float64(x)*float64(y) + float64(z)) // exact but for the sign of zero, which IEEE 754 defines
	}
	f, _ := sum.Float32()
	return f
}

func requireFMA(t *testing.T, x, y, z float32) {
	t.Helper()
	want, got := exactFMA(x, y, z), fma(x, y, z)
	if math.Float32bits(want) != math.Float32bits(got) {
		t.Fatalf("fma(%x, %x, %x) = %x, want %x", x, y, z, got, want)
	}
}

func TestFMARoundsOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	finite := func() float32 {
		for {
			if f := math.Float32frombits(r.Uint32()); f-f == 0 {
				return f
			}
		}
	}
	for range 200_000 {
		requireFMA(t, finite(), finite(), finite())
		// Sums in which both terms matter.
		x, y := float32(r.NormFloat64()), float32(r.NormFloat64())
		requireFMA(t, x, y, float32(math.Ldexp(r.NormFloat64(), r.IntN(60)-30)))
	}
}

// Sums so close to the middle between two float32 that float64 rounds them to the middle.
func TestFMARoundsOnceNearTheMiddle(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	wrong := 0
	for range 100_000 {
		z := float32(1 + r.Float64())
		exponent := r.IntN(270) - 148
		// x·y is half of the last bit of z, plus or minus a small part of it.
		x := float32(1 + math.Ldexp(1, -1-r.IntN(23)))
		y := float32(1 - math.Ldexp(1, -1-r.IntN(23)))
		if r.IntN(2) == 0 {
			y = -y
		}
		z = float32(math.Ldexp(float64(z), exponent))
		half := float64(z) - float64(math.Nextafter32(z, 0))
		y = float32(float64(y) * half / 2)
		requireFMA(t, x, y, z)
		if float32(math.FMA(float64(x), float64(y), float64(z))) != exactFMA(x, y, z) {
			wrong++
		}
	}
	require.Greater(t, wrong, 100, "the operands are not hard: rounding twice is right for them")
}

func TestFMAOfSpecialValues(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	zero := float32(0)
	least, most := float32(math.SmallestNonzeroFloat32), float32(math.MaxFloat32)
	for _, c := range []struct{ x, y, z, want float32 }{
		{inf, 1, 1, inf}, {inf, -1, 1, -inf}, {1, 1, -inf, -inf}, {most, most, -inf, -inf},
		{inf, 0, 1, nan}, {inf, 1, -inf, nan}, {nan, 0, 0, nan}, {0, 0, nan, nan}, {0, nan, inf, nan},
		{most, 2, 0, inf}, {most, 2, -most, most}, {most, 1, float32(math.Ldexp(1, 102)), most}, {most, 1, float32(math.Ldexp(1, 103)), inf},
		{0, 1, 0, 0}, {0, -1, 0, 0}, {0, -1, -zero, -zero}, {0, 1, -zero, 0}, {1, -1, 1, 0},
		{least, .5, 0, 0}, {least, .75, 0, least}, {least, -.5, 0, float32(math.Copysign(0, -1))}, {1e-30, -1e-30, 0, float32(math.Copysign(0, -1))},
		{least, .5, least, 2 * least}, {least, .5, 2 * least, 2 * least},
	} {
		require.Equal(t, bits([]float32{c.want}), bits([]float32{fma(c.x, c.y, c.z)}), "%v", c)
	}
}

func FuzzFMA(f *testing.F) {
	f.Add(uint32(0x3f800001), uint32(0x33000001), uint32(0x3f800000))
	f.Fuzz(func(t *testing.T, a, b, c uint32) {
		x, y, z := math.Float32frombits(a), math.Float32frombits(b), math.Float32frombits(c)
		if x-x != 0 || y-y != 0 || z-z != 0 {
			t.Skip("the reference takes finite numbers")
		}
		requireFMA(t, x, y, z)
	})
}
