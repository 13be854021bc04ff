package crew

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ringtrain/ringtrain/collective"
)

// A ToldError is a failure of one rank that all ranks know of. No rank needs to break
// the group to tell the others.
type ToldError struct{ text string }

// Error returns the failure and, on other ranks, the rank that failed.
func (e *ToldError) Error() string { return e.text }

// maxErrorText is the most bytes of an error's text that Agree sends.
const maxErrorText = 4096

// Agree tells all ranks about a failure of any of them. It returns nil if mine is nil
// on every rank, and otherwise a *ToldError: the rank's own failure, one on its machine,
// or the first. All ranks must call it.
func Agree(ctx context.Context, g *collective.Group, mine error) error {
	var text []byte
	if mine != nil {
		said := cmp.Or(mine.Error(), "an error without a text")
		text = []byte(strings.ToValidUTF8(said[:min(len(said), maxErrorText)], ""))
	}
	v, lengths := g.View(), make([]int64, g.Size())
	near := func(rank int) bool { return v.Members[rank].Node == v.Members[v.Self].Node }
	err := collective.AllGather(ctx, g, lengths, []int64{int64(len(text))})
	source := -1
	var words []byte
	for rank := 0; rank < len(lengths) && err == nil; rank++ {
		if lengths[rank] == 0 {
			continue
		}
		if lengths[rank] < 0 || lengths[rank] > maxErrorText {
			err = fmt.Errorf("rank %d (%s) announces %d bytes of text, but the limit is %d", rank, v.Name(rank), lengths[rank], maxErrorText)
			break
		}
		said := make([]byte, lengths[rank])
		if rank == v.Self {
			copy(said, text)
		}
		err = collective.Broadcast(ctx, g, said, rank)
		if source < 0 || near(rank) && !near(source) {
			source, words = rank, said
		}
	}
	switch {
	case mine != nil:
		return &ToldError{mine.Error()}
	case err != nil:
		return fmt.Errorf("exchanging failures: %w", err)
	case source < 0:
		return nil
	}
	return &ToldError{fmt.Sprintf("rank %d (%s): %s", source, v.Name(source), words)}
}

// AgreeUsage is Agree for mistakes that the user can correct.
func AgreeUsage(ctx context.Context, g *collective.Group, mine error) error {
	err := Agree(ctx, g, mine)
	var told *ToldError
	if errors.As(err, &told) {
		return Usage(err)
	}
	return err
}
