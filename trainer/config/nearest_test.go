package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "abc", 0}, {"abc", "abd", 1}, {"abc", "ac", 1}, {"ac", "abc", 1}, {"modle", "model", 1}, {"kitten", "sitting", 3}, {"ca", "abc", 3}} {
		require.Equal(t, c.want, distance(c.a, c.b), "%q %q", c.a, c.b)
		require.Equal(t, c.want, distance(c.b, c.a), "%q %q", c.b, c.a)
	}
}

func TestNearest(t *testing.T) {
	names := []string{"batch_size", "iterations", "seed", "lr"}
	for word, want := range map[string]string{
		"batchsize": "batch_size", "Batch-Size": "batch_size", "iteration": "iterations", "sede": "seed", "l": "lr", "zzzz": "", "": "",
	} {
		require.Equal(t, want, Nearest(word, names), word)
	}
}
