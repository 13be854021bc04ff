package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/ringtrain/ringtrain/collective"
)

// A toldError is a failure of one rank that all ranks know of. Nobody needs to
// break the group to tell the others.
type toldError struct{ text string }

func (e *toldError) Error() string { return e.text }

// mostWords is the longest text of a failure that ranks tell each other, in bytes.
const mostWords = 4096

// agree makes a failure of any rank one of all: it returns nil if mine is nil on
// every rank, and else a toldError. Of several failures a rank returns its own,
// or one of its machine, or the first. All ranks call it.
func agree(ctx context.Context, g *collective.Group, mine error) error {
	var text []byte
	if mine != nil {
		text = []byte(mine.Error())
		text = text[:min(len(text), mostWords)]
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
		return &toldError{mine.Error()}
	case err != nil:
		return fmt.Errorf("exchanging failures: %w", err)
	case source < 0:
		return nil
	}
	return &toldError{fmt.Sprintf("rank %d (%s): %s", source, v.Name(source), words)}
}

// agreeUsage is agree about what is the user's to mend.
func agreeUsage(ctx context.Context, g *collective.Group, mine error) error {
	err := agree(ctx, g, mine)
	var told *toldError
	if errors.As(err, &told) {
		return usage(err)
	}
	return err
}
