package launch

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// rateUnits lists the units of a rate in bits per second. A unit comes before those that
// are suffixes of it.
var rateUnits = []struct {
	name string
	bits float64
}{{"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}, {"tbit", 1e12}, {"bit", 1}}

// maxRate keeps sums of rates, and their products with nanoseconds, far from overflow.
const maxRate = 1e15

// ParseRate parses the rate of a link in bits per second, a number with a unit such as
// "100mbit" or "2.5gbit". The units are bit, kbit, mbit, gbit and tbit, in powers of
// 1000; case does not matter. A rate is at least one bit per second. There is no notation
// for an unlimited rate.
func ParseRate(s string) (int64, error) {
	lower := strings.ToLower(s)
	for _, unit := range rateUnits {
		digits, found := strings.CutSuffix(lower, unit.name)
		if !found {
			continue
		}
		number, err := strconv.ParseFloat(digits, 64)
		if err != nil || strings.Trim(digits, "0123456789.") != "" {
			return 0, fmt.Errorf("rate %q: %q is not a number", s, digits)
		}
		rate := math.Round(number * unit.bits)
		if rate < 1 || rate > maxRate {
			return 0, fmt.Errorf("rate must be from 1bit to 1000tbit, not %q", s)
		}
		return int64(rate), nil
	}
	return 0, fmt.Errorf("rate must be a number with a unit (bit, kbit, mbit, gbit or tbit) such as 2.5gbit, not %q", s)
}
