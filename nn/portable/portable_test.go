package portable

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// functions are what package math has too, with numbers to call them with and the greatest
// difference: in units in the last place, or absolute in units of 2⁻⁵³. It includes the errors of
// package math.
var functions = []struct {
	name     string
	f, other func(x float64) float64
	draw     func(r *rand.Rand) float64 // rounds every product too, or multiplies by powers of 2
	absolute bool
	most     float64
}{
	{"exp", Exp, math.Exp, func(r *rand.Rand) float64 { return float64(1400*r.Float64()) - 700 }, false, 3},
	{"small exp", Exp, math.Exp, func(r *rand.Rand) float64 { return (2*r.Float64() - 1) * math.Ldexp(1, -r.IntN(60)) }, false, 2},
	{"log", Log, math.Log, func(r *rand.Rand) float64 { return math.Ldexp(1+r.Float64(), r.IntN(2000)-1000) }, false, 2},
	{"log near 1", Log, math.Log, func(r *rand.Rand) float64 { return 1 + (r.Float64()-.4)*math.Ldexp(1, -r.IntN(40)) }, false, 2},
	{"sin", Sin, math.Sin, func(r *rand.Rand) float64 { return (2*r.Float64() - 1) * math.Ldexp(1, r.IntN(26)-6) }, true, 3},
	{"cos", Cos, math.Cos, func(r *rand.Rand) float64 { return (2*r.Float64() - 1) * math.Ldexp(1, r.IntN(26)-6) }, true, 3},
}

func TestAccuracy(t *testing.T) {
	for _, c := range functions {
		r := rand.New(rand.NewPCG(1, 2))
		for range 100_000 {
			x := c.draw(r)
			got, want := c.f(x), c.other(x)
			unit := math.Nextafter(math.Abs(want), math.Inf(1)) - math.Abs(want)
			if c.absolute {
				unit = 0x1p-53
			}
			require.LessOrEqual(t, math.Abs(got-want), c.most*unit, "%s of %v", c.name, x)
		}
	}
}

// The functions agree with package math where it is exact, and beyond their ranges.
func TestSpecialValues(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"exp", Exp(0), 1}, {"exp", Exp(1), math.E}, {"exp", Exp(inf), inf}, {"exp", Exp(-inf), 0}, {"exp", Exp(710), inf}, {"exp", Exp(-746), 0}, {"exp", Exp(nan), nan},
		{"exp", Exp(709.7), 1.6549840276802644e308}, {"a subnormal exp", Exp(-740), 4.2e-322},
		{"log", Log(1), 0}, {"log", Log(0), -inf}, {"log", Log(-1), nan}, {"log", Log(inf), inf}, {"log", Log(nan), nan}, {"log", Log(2), math.Ln2}, {"log", Log(math.E), 1},
		{"the log of a subnormal", Log(0x1p-1070), -1070 * math.Ln2},
		{"sin", Sin(0), 0}, {"sin", Sin(inf), nan}, {"sin", Sin(nan), nan}, {"sin", Sin(1 << 20), nan}, {"sin", Sin(math.Pi / 2), 1},
		{"cos", Cos(0), 1}, {"cos", Cos(-inf), nan}, {"cos", Cos(math.Pi), -1},
		{"power", Power(3, 4), 81}, {"power", Power(0, 0), 1}, {"power", Power(.5, 3000), 0}, {"power", Power(2, 3000), inf},
		{"normal", Normal(0, .3), 0}, {"normal", Normal(1-math.Exp(-2), 0), 2},
	} {
		if math.IsNaN(c.want) {
			require.True(t, math.IsNaN(c.got), c.what)
			continue
		}
		require.Equal(t, c.want, c.got, c.what)
	}
}

// Power has the bits of math.Pow, wherever Go compiles that without fusion, which changes nothing
// here.
func TestPowerEqualsPow(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 100_000 {
		x, n := .8+.25*r.Float64(), r.IntN(3000)
		require.Equal(t, math.Pow(x, float64(n)), Power(x, n), "%v to the power of %d", x, n)
	}
}

// The moments of normal numbers are those of the distribution.
func TestNormal(t *testing.T) {
	const n = 200_000
	r, sum, squares := rand.New(rand.NewPCG(5, 6)), 0., 0.
	for range n {
		v := Normal(r.Float64(), r.Float64())
		sum += v
		squares += v * v
	}
	require.InDelta(t, 0, sum/n, .01)
	require.InDelta(t, 1, squares/n, .02)
}

// Every processor has these bits.
func TestBits(t *testing.T) {
	sums := map[string]string{}
	for _, c := range functions {
		r, sum := rand.New(rand.NewPCG(7, 8)), sha256.New()
		for range 20_000 {
			require.NoError(t, binary.Write(sum, binary.LittleEndian, c.f(c.draw(r))))
		}
		sums[c.name] = hex.EncodeToString(sum.Sum(nil)[:8])
	}
	require.Equal(t, map[string]string{
		"exp":        "a001902eff7c4d23",
		"small exp":  "76811ee55ad71dfa",
		"log":        "9d13dab0facf6b30",
		"log near 1": "892dab850aae4a6d",
		"sin":        "7a57622c9e61eec9",
		"cos":        "1dc83ce687e24746",
	}, sums)
}

func ExampleExp() {
	fmt.Println(Exp(1))
	// Output: 2.718281828459045
}
