package launch

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseRate(t *testing.T) {
	tests := []struct {
		text string
		want int64 // 0 means an error that contains problem
		says string
	}{
		{"1bit", 1, ""},
		{"64kbit", 64_000, ""},
		{"100mbit", 100_000_000, ""},
		{"100Mbit", 100_000_000, ""},
		{"1gbit", 1_000_000_000, ""},
		{"2.5gbit", 2_500_000_000, ""},
		{"10Gbit", 10_000_000_000, ""},
		{".4tbit", 400_000_000_000, ""},
		{"1000tbit", 1_000_000_000_000_000, ""},
		{"", 0, "must be a number with a unit"},
		{"1", 0, "must be a number with a unit"},
		{"1000000", 0, "must be a number with a unit"},
		{"1g", 0, "must be a number with a unit"},
		{"1gbps", 0, "must be a number with a unit"}, // bytes in tc, bits for most people
		{"1gbit/s", 0, "must be a number with a unit"},
		{"gbit", 0, `"" is not a number`},
		{"fastgbit", 0, `"fast" is not a number`},
		{"1 gbit", 0, `"1 " is not a number`},
		{"1e3gbit", 0, `"1e3" is not a number`},
		{"0x1p3mbit", 0, "is not a number"},
		{"1.2.3gbit", 0, "is not a number"},
		{"infgbit", 0, "is not a number"},
		{"nangbit", 0, "is not a number"},
		{"-1gbit", 0, `"-1" is not a number`},
		{"0gbit", 0, "must be from 1bit to 1000tbit"},
		{"0.4bit", 0, "must be from 1bit to 1000tbit"},
		{"1001tbit", 0, "must be from 1bit to 1000tbit"},
	}
	for _, test := range tests {
		t.Run(test.text, func(t *testing.T) {
			got, err := ParseRate(test.text)
			require.Equal(t, test.want, got)
			if test.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.says)
			require.ErrorContains(t, err, strconv.Quote(test.text))
		})
	}
}

func FuzzParseRate(f *testing.F) {
	for _, s := range []string{"", "1gbit", "2.5Gbit", "-1mbit", "1e9bit", "0kbit", "9999999999tbit", "\xffbit"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParseRate(s)
		if err != nil {
			require.Zero(t, got)
			require.ErrorContains(t, err, strconv.Quote(s))
			return
		}
		require.Positive(t, got)
		require.LessOrEqual(t, got, int64(maxRate))
		again, err := ParseRate(strconv.FormatInt(got, 10) + "bit")
		require.NoError(t, err)
		require.Equal(t, got, again)
	})
}
