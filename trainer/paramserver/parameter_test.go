package paramserver

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLayout(t *testing.T) {
	l := layout{Parameters: sized(3, 40, 1), Slots: []string{"m", "v"}}
	l.Parameters[1].Momentum = .25
	b, err := l.encode()
	require.NoError(t, err)
	got, err := decodeLayout(b)
	require.NoError(t, err)
	require.Equal(t, l, got)

	l.Parameters[0].Name = strings.Repeat("x", maxLayout)
	_, err = l.encode()
	require.ErrorContains(t, err, "too long")
}

func TestBadLayouts(t *testing.T) {
	for encoded, want := range map[string]string{
		"":                                       "unexpected end",
		"[]":                                     "cannot unmarshal",
		`{"parameters":[{"name":"w"}]}`:          `"w" cannot have 0 elements`,
		`{"parameters":[{"name":"w","len":-1}]}`: "cannot have -1 elements",
		`{"parameters":[{"name":"w","len":9000000000000}]}`:                                   "cannot have 9000000000000 elements",
		`{"parameters":[{"name":"w","len":4,"offset":-4}]}`:                                   "4 elements at -4",
		`{"parameters":[{"name":"a","len":4},{"name":"b","len":4,"offset":3}]}`:               "4 elements at 3, after 4 others",
		`{"parameters":[{"name":"w","len":4,"momentum":2}]}`:                                  `momentum of "w" must be from 0 to 1, not 2`,
		`{"parameters":[{"name":"w","len":4,"offset":9000000000000}]}`:                        "at 9000000000000",
		`{"parameters":[{"name":"w","len":4}],"buckets":[1]}`:                                 "a bucket cannot begin at parameter 1, before one that ends at 1",
		`{"parameters":[{"name":"w","len":4}],"buckets":[0,0]}`:                               "cannot begin at parameter 0, before one that ends at 0",
		`{"parameters":[{"name":"w","len":4}],"buckets":[-1]}`:                                "cannot begin at parameter -1",
		`{"parameters":[{"name":"a","len":4},{"name":"b","len":4,"offset":4}],"buckets":[1]}`: "1 parameters are in no bucket",
		`{"parameters":[{"name":"w","len":4,"offset":99999999999999999999999999}]}`:           "cannot unmarshal",
	} {
		_, err := decodeLayout([]byte(encoded))
		require.ErrorContains(t, err, want, encoded)
	}
	_, err := decodeLayout(make([]byte, maxLayout+1))
	require.ErrorContains(t, err, "at most")
}

// What is accepted can be split and is encoded to the same layout.
func FuzzDecodeLayout(f *testing.F) {
	b, err := layout{Parameters: sized(3, 40, 1), Slots: []string{"m"}}.encode()
	require.NoError(f, err)
	f.Add(b)
	f.Add([]byte(`{"parameters":[{"name":"w","len":4,"momentum":2}]}`))
	f.Add([]byte(`{"parameters":[{"name":"a","len":4},{"name":"b","len":4,"offset":16}],"buckets":[1,0]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := decodeLayout(b)
		if err != nil {
			return
		}
		again, err := l.encode()
		require.NoError(t, err)
		same, err := decodeLayout(again)
		require.NoError(t, err)
		require.Equal(t, l.Parameters, same.Parameters)
		require.True(t, slices.Equal(l.Buckets, same.Buckets), "%v, not %v", same.Buckets, l.Buckets) // none may be nil or empty
		routesOf(l, split(l.Parameters, 3, false))
	})
}
