package trainer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ringtrain/ringtrain/collective"
)

// A Setting is something that must be the same on all ranks, such as the seed or the
// data. Ranks compare digests. They send values, shortened if long, only to report
// what differs.
type Setting struct {
	Name, Value string
	// Parts are the components of Value, such as the keys of a config. If values differ
	// and there are parts, the error names the parts that differ. May be nil.
	Parts []Setting
	// Derived marks a setting that follows from others. The error names it only if
	// nothing else differs.
	Derived bool
}

// A SettingsError reports the settings and ranks that differ from rank 0.
type SettingsError struct {
	Settings    []string
	Ranks       []int
	Names       []string
	Differences []string // each names a setting, or a part of one, and both values
}

// shownDifferences bounds the differences that an error names.
const shownDifferences = 4

// Error names the settings, their values and the ranks.
func (e *SettingsError) Error() string {
	text := strings.Join(e.Settings, " and ") + " differ"
	if len(e.Differences) > 0 {
		text = strings.Join(e.Differences[:min(len(e.Differences), shownDifferences)], "; ")
	}
	if n := len(e.Differences) - shownDifferences; n > 0 {
		text += fmt.Sprintf("; and %d more", n)
	}
	if n := len(e.Names); n > 1 {
		text += fmt.Sprintf("; %d ranks differ from rank 0, the last is %s", n, e.Names[n-1])
	}
	return text + ": give the same command, with the same data, on every machine"
}

// compareSettings returns a *SettingsError if settings differ between ranks. All
// ranks pass the same names in the same order.
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
	var odd, derived []Setting
	for i, s := range settings {
		differs := false
		for r := 1; r < g.Size(); r++ {
			if all[r*len(mine)+i] != all[i] {
				differs = true
				e.Ranks = append(e.Ranks, r)
			}
		}
		switch {
		case differs && s.Derived:
			derived = append(derived, s)
		case differs:
			odd = append(odd, s)
		}
	}
	if odd == nil {
		odd = derived
	}
	if odd == nil {
		return nil
	}
	for _, s := range odd {
		e.Settings = append(e.Settings, s.Name)
	}
	slices.Sort(e.Ranks)
	e.Ranks = slices.Compact(e.Ranks)
	e.Names = names(g.View(), e.Ranks)
	var err error
	if e.Differences, err = explainSettings(ctx, g, odd, e.Ranks); err != nil {
		return fmt.Errorf("trainer: exchanging the settings that differ: %w", err)
	}
	return e
}

// explainSettings describes the differences as this rank sees them. Rank 0 and the
// first rank that differs send their settings. Other ranks that differ compare
// themselves with rank 0, and the rest with the first that differs.
func explainSettings(ctx context.Context, g *collective.Group, settings []Setting, odd []int) ([]string, error) {
	mine := details(settings)
	other := 0
	if !slices.Contains(odd, g.Rank()) {
		other = odd[0]
	}
	var theirs []detail
	for _, root := range []int{0, odd[0]} {
		told, err := tellDetails(ctx, g, mine, root)
		if err != nil {
			return nil, err
		}
		if root == other {
			theirs = told
		}
	}
	return differingDetails(mine, theirs, fmt.Sprintf("rank %d (%s)", other, g.View().Name(other))), nil
}

// A detail is the wire form of a setting or of a part of one.
type detail struct {
	Name   string `json:"n"`
	Value  string `json:"v"` // shortened
	Digest int64  `json:"d"` // of the whole
}

// Limits for what ranks send about settings that differ, in bytes.
const (
	maxDetail  = 80
	maxDetails = 1 << 18
)

// details are the parts of settings. If they exceed the limit, the last has no name
// and stands for those left out.
func details(settings []Setting) []detail {
	var list []detail
	size := 0
	add := func(s Setting) {
		if size > maxDetails {
			return
		}
		d := detail{Name: shorten(s.Name), Value: shorten(s.Value), Digest: digest([]byte(s.Value))}
		if size += 2*len(d.Name) + 6*len(d.Value) + 64; size > maxDetails {
			d = detail{}
		}
		list = append(list, d)
	}
	for _, s := range settings {
		for _, part := range s.Parts {
			add(part)
		}
		if len(s.Parts) == 0 {
			add(s)
		}
	}
	return list
}

func shorten(s string) string {
	if len(s) <= maxDetail {
		return s
	}
	return strings.ToValidUTF8(s[:maxDetail], "") + "..."
}

// tellDetails broadcasts the details of one rank.
func tellDetails(ctx context.Context, g *collective.Group, mine []detail, root int) ([]detail, error) {
	encoded, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	size := []int64{int64(len(encoded))}
	if err := collective.Broadcast(ctx, g, size, root); err != nil {
		return nil, err
	}
	if size[0] < 0 || size[0] > 2*maxDetails {
		return nil, errors.New("they are too long")
	}
	text := make([]byte, size[0])
	if g.Rank() == root {
		copy(text, encoded)
	}
	if err := collective.Broadcast(ctx, g, text, root); err != nil {
		return nil, err
	}
	var told []detail
	return told, json.Unmarshal(text, &told)
}

// differingDetails returns the details that differ between two ranks: first in the
// order of this rank, then those that only the other has.
func differingDetails(here, there []detail, who string) []string {
	find := func(in []detail, name string) (detail, bool) {
		i := slices.IndexFunc(in, func(d detail) bool { return d.Name == name })
		if i < 0 {
			return detail{}, false
		}
		return in[i], true
	}
	_, hereCut := find(here, "")
	_, thereCut := find(there, "")
	const unset = "not set"
	var list []string
	for _, h := range here {
		t, ok := find(there, h.Name)
		switch {
		case !ok && thereCut: // perhaps it was left out
		case !ok:
			list = append(list, fmt.Sprintf("%s is %s here and %s on %s", h.Name, cmp.Or(h.Value, `""`), unset, who))
		case t.Digest != h.Digest:
			list = append(list, fmt.Sprintf("%s is %s here and %s on %s", h.Name, cmp.Or(h.Value, `""`), cmp.Or(t.Value, `""`), who))
		}
	}
	for _, t := range there {
		if _, ok := find(here, t.Name); !ok && !hereCut {
			list = append(list, fmt.Sprintf("%s is %s here and %s on %s", t.Name, unset, cmp.Or(t.Value, `""`), who))
		}
	}
	return list
}

// digest is the first 8 bytes of the SHA-256, made odd so that it is never 0.
func digest(b []byte) int64 {
	sum := sha256.Sum256(b)
	return int64(binary.LittleEndian.Uint64(sum[:]) | 1)
}
