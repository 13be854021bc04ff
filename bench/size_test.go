package bench_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringtrain/ringtrain/bench"
)

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int{"0": 0, "4": 4, "1K": 1024, "64k": 65536, "64M": 64 << 20, "2G": 2 << 30, "3g": 3 << 30} {
		got, err := bench.ParseSize(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "K", "-1", "1.5M", "1T", "1KB", " 1", "+1", "0x10", "9999999999G", "9223372036854775807K"} {
		_, err := bench.ParseSize(text)
		require.ErrorContains(t, err, "is not a size", text)
	}
}

func TestFormatSize(t *testing.T) {
	for bytes, want := range map[int]string{0: "0", 4: "4", 1000: "1000", 1024: "1K", 1536: "1536", 1 << 20: "1M", 3 << 40: "3072G"} {
		require.Equal(t, want, bench.FormatSize(bytes))
	}
	rapid.Check(t, func(t *rapid.T) {
		bytes := rapid.IntRange(0, math.MaxInt).Draw(t, "bytes")
		got, err := bench.ParseSize(bench.FormatSize(bytes))
		require.NoError(t, err)
		require.Equal(t, bytes, got)
	})
}

func FuzzParseSize(f *testing.F) {
	f.Add("64M")
	f.Add("G")
	f.Fuzz(func(t *testing.T, text string) {
		bytes, err := bench.ParseSize(text)
		if err != nil {
			return
		}
		require.GreaterOrEqual(t, bytes, 0)
		again, err := bench.ParseSize(bench.FormatSize(bytes))
		require.NoError(t, err)
		require.Equal(t, bytes, again)
	})
}

func TestSweep(t *testing.T) {
	for _, c := range []struct {
		begin, end, factor int
		want               []int
	}{
		{4, 1024, 4, []int{4, 16, 64, 256, 1024}},
		{4, 1023, 4, []int{4, 16, 64, 256}},
		{32, 32, 2, []int{32}},
		{32, 32, 0, []int{32}},
		{1, 3, 2, []int{1, 2}},
		{math.MaxInt / 2, math.MaxInt, 2, []int{math.MaxInt / 2, math.MaxInt - 1}},
		{math.MaxInt/2 + 1, math.MaxInt, 2, []int{math.MaxInt/2 + 1}},
	} {
		got, err := bench.Sweep(c.begin, c.end, c.factor)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
	for says, c := range map[string][3]int{"-b must be at least 1, not 0": {0, 4, 2}, "-b must be at most -e, 4, not 8": {8, 4, 2}, "-f must be at least 2, not 1": {4, 8, 1}} {
		_, err := bench.Sweep(c[0], c[1], c[2])
		require.ErrorContains(t, err, says)
	}
}
