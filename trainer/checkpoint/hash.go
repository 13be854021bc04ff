package checkpoint

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
)

// Hash returns the SHA-256, in hex, of the values of all tensors: little-endian,
// row-major, with the tensors sorted by name (bytewise). Names and shapes are not
// included. Runs report it as weights_sha256. It is equal for equal weights, whatever
// order they are stored in.
func Hash(tensors []Named) (string, error) {
	sorted := slices.Clone(tensors)
	slices.SortFunc(sorted, func(a, b Named) int { return cmp.Compare(a.Name, b.Name) })
	h := sha256.New()
	for i, n := range sorted {
		if i > 0 && sorted[i-1].Name == n.Name {
			return "", fmt.Errorf("checkpoint: two tensors are named %q", n.Name)
		}
		if err := hashOne(h, n); err != nil {
			return "", fmt.Errorf("checkpoint: tensor %q: %w", n.Name, err)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func hashOne(h io.Writer, n Named) error {
	vals, _, err := values(n.Tensor)
	if err != nil {
		return err
	}
	return writeValues(h, vals)
}
