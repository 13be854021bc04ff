package nn_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringtrain/ringtrain/nn"
)

// The vectors are those of Random123's kat_vectors for philox4x32, 10 rounds.
func TestPhiloxKnownAnswers(t *testing.T) {
	for _, c := range []struct {
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{
			[4]uint32{},
			[2]uint32{},
			[4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
		}, {
			[4]uint32{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
			[2]uint32{0xffffffff, 0xffffffff},
			[4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
		}, {
			[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
			[2]uint32{0xa4093822, 0x299f31d0},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1},
		},
	} {
		require.Equal(t, c.want, nn.Philox(c.key, c.counter))
	}
}

// A worker with every size-th row draws the same numbers as one worker with all rows.
func TestDrawDoesNotDependOnSharding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 8).Draw(t, "size")
		rank := rapid.IntRange(0, size-1).Draw(t, "rank")
		row := rapid.IntRange(0, 100).Draw(t, "row")
		block := rapid.IntRange(0, 100).Draw(t, "block")
		layer := rapid.Uint32Range(0, 9).Draw(t, "layer")
		s := nn.Stream{
			Seed: rapid.Uint64().Draw(t, "seed"),
			Step: rapid.Uint64Range(0, 1<<48-1).Draw(t, "step"),
		}
		whole := s.Draw(layer, rank+row*size, block)
		s.First, s.Stride = rank, size
		require.Equal(t, whole, s.Draw(layer, row, block))
	})
}

// Every coordinate matters, including the high halves of seed and step.
func TestDrawDependsOnEachCoordinate(t *testing.T) {
	base := nn.Stream{Seed: 1, Step: 2}
	seen := map[[4]uint32]string{base.Draw(3, 4, 5): "base"}
	for name, words := range map[string][4]uint32{
		"seed":      nn.Stream{Seed: 2, Step: 2}.Draw(3, 4, 5),
		"seed high": nn.Stream{Seed: 1 | 1<<32, Step: 2}.Draw(3, 4, 5),
		"step":      nn.Stream{Seed: 1, Step: 3}.Draw(3, 4, 5),
		"step high": nn.Stream{Seed: 1, Step: 2 | 1<<32}.Draw(3, 4, 5),
		"layer":     base.Draw(4, 4, 5),
		"row":       base.Draw(3, 5, 5),
		"first":     nn.Stream{Seed: 1, Step: 2, First: 7}.Draw(3, 4, 5),
		"block":     base.Draw(3, 4, 6),
	} {
		require.NotContains(t, seen, words, name)
		seen[words] = name
	}
}
