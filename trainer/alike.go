package trainer

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/ringtrain/ringtrain/collective"
)

// A Setting is something that all ranks must have alike, such as the seed or
// the data. Only a digest of the value is compared.
type Setting struct {
	Name, Value string
}

// A SettingsError says which settings of which ranks are not as rank 0's.
type SettingsError struct {
	Settings []string
	Ranks    []int
	Names    []string
}

// Error names the settings and the ranks.
func (e *SettingsError) Error() string {
	return fmt.Sprintf("trainer: %s not as rank 0: %s differ; give the same command, with the same data and version, on every machine",
		strings.Join(e.Names, ", "), strings.Join(e.Settings, " and "))
}

// compareSettings finds out before the first step whether all ranks are to do
// the same. All ranks name the same settings in the same order.
func compareSettings(ctx context.Context, g *collective.Group, settings []Setting) error {
	mine := make([]int64, len(settings))
	for i, s := range settings {
		mine[i] = digest([]byte(s.Name + "\x00" + s.Value))
	}
	all := make([]int64, len(mine)*g.Size())
	if err := collective.AllGather(ctx, g, all, mine); err != nil {
		return fmt.Errorf("trainer: comparing settings: %w", err)
	}
	e := &SettingsError{}
	ranks := map[int]bool{}
	for i, s := range settings {
		differs := false
		for r := 1; r < g.Size(); r++ {
			if all[r*len(mine)+i] != all[i] {
				differs, ranks[r] = true, true
			}
		}
		if differs {
			e.Settings = append(e.Settings, s.Name)
		}
	}
	if e.Settings == nil {
		return nil
	}
	for r := range g.Size() {
		if ranks[r] {
			e.Ranks = append(e.Ranks, r)
		}
	}
	e.Names = names(g.View(), e.Ranks)
	return e
}

// digest is the first bytes of the SHA-256; never 0.
func digest(b []byte) int64 {
	sum := sha256.Sum256(b)
	return int64(binary.LittleEndian.Uint64(sum[:]) | 1)
}
