package launch

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// rateUnits are the units of a rate in bits per second, the longer before
// those they end in.
var rateUnits = []struct {
	name string
	bits float64
}{{"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}, {"tbit", 1e12}, {"bit", 1}}

// maxRate keeps sums of rates and products with nanoseconds far from overflow.
const maxRate = 1e15

// ParseRate reads the rate of a link, a number with a unit such as "100mbit"
// or "2.5gbit", as bits per second. The units are bit, kbit, mbit, gbit and
// tbit, in powers of 1000 and in any case. A rate is one bit per second at
// least; there is no word for an unlimited one.
func ParseRate(s string) (int64, error) {
	lower := strings.ToLower(s)
	for _, unit := range rateUnits {
		digits, found := strings.CutSuffix(lower, unit.name)
		if !found {
			continue
		}
		number, err := strconv.ParseFloat(digits, 64)
		if err != nil || strings.Trim(digits, "0123456789.") != "" {
			return 0, fmt.Errorf("launch: rate %q: %q is no number", s, digits)
		}
		rate := math.Round(number * unit.bits)
		if rate < 1 || rate > maxRate {
			return 0, fmt.Errorf("launch: rate %q: not between 1bit and 1000tbit", s)
		}
		return int64(rate), nil
	}
	return 0, fmt.Errorf("launch: rate %q: want a number with a unit: bit, kbit, mbit, gbit or tbit, as in 2.5gbit", s)
}
