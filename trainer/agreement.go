package trainer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
)

// An Agreement is what ranks that make the same steps agree on besides their next
// values. AllReduce has one, and so have strategies in other packages. Its methods are
// collective: all ranks of the group call them in the same order.
type Agreement struct {
	group   *collective.Group
	backend nn.Backend
	mine    []int64 // this rank's word, and what it carries
	words   []int64 // all ranks'
	timeout stepTimeout
	hashAll bool // Step compares the values in every step
}

// NewAgreement returns the Agreement of a group of ranks that train. The group and the
// backend stay the caller's.
func NewAgreement(g *collective.Group, b nn.Backend) *Agreement {
	return &Agreement{group: g, backend: b, mine: make([]int64, wordLen), words: make([]int64, wordLen*g.Size())}
}

// Start compares the settings of s, and own after them. It returns the state that the
// ranks begin with: on rank 0 that of s, on other ranks only the step of it. The error is
// a *SettingsError if settings differ.
func (a *Agreement) Start(ctx context.Context, s Start, own ...Setting) (State, error) {
	if err := compareSettings(ctx, a.group, slices.Concat(s.Settings, own)); err != nil {
		return State{}, err
	}
	step := []int64{int64(s.From.Step)}
	if err := collective.Broadcast(ctx, a.group, step, 0); err != nil {
		return State{}, fmt.Errorf("trainer: agreeing on the first step: %w", err)
	}
	if a.group.Rank() != 0 {
		return State{Step: int(step[0])}, nil
	}
	return s.From, nil
}

// Values gives all ranks the values of rank 0.
func (a *Agreement) Values(ctx context.Context, p *nn.Params) error {
	if err := a.group.Broadcast(ctx, Operand(p.Values), 0); err != nil {
		return fmt.Errorf("trainer: broadcasting the initial weights: %w", err)
	}
	return nil
}

// Begin begins the exchange of a step. The context that it returns ends after the time
// that a step may take; the cause is then collective.ErrLate.
func (a *Agreement) Begin(ctx context.Context, s Step) (context.Context, context.CancelFunc) {
	a.group.Mark(uint64(s.Index))
	return context.WithTimeoutCause(ctx, a.timeout.begin(time.Now(), 1, s.Late), collective.ErrLate)
}

// Step exchanges what each rank knows about a step. bad is what NotFinite returned for
// this rank's gradients. Every some steps it compares the values. The Report has the loss
// and the rows of all ranks. The error is a *NotFiniteError or a *DivergedError, on all
// ranks, if a loss or gradient is not finite, or ranks differ.
func (a *Agreement) Step(ctx context.Context, p *nn.Params, s Step, bad int64) (Report, error) {
	return a.agree(ctx, p, a.word(p, s, bad))
}

// Word returns the word that Step sends, for strategies that send it themselves, together
// with something else: see [Outcome]. It is valid until the next call of a method.
func (a *Agreement) Word(p *nn.Params, s Step, bad int64) []int64 {
	a.word(p, s, bad).put(a.mine)
	return a.mine[:wordLen]
}

func (a *Agreement) word(p *nn.Params, s Step, bad int64) word {
	w := word{step: int64(s.Index), weight: int64(s.Weight), loss: s.Loss, bad: bad, change: int64(s.Switch)}
	if s.Stop {
		w.stop = 1
	}
	if a.hashAll || s.Index%hashEvery == 0 {
		w.hash = hash(hostCopy(a.backend, p.Values))
	}
	return w
}

// carry makes each word carry this many more numbers. All ranks call it, between steps.
func (a *Agreement) carry(n int) {
	a.mine, a.words = make([]int64, wordLen+n), make([]int64, (wordLen+n)*a.group.Size())
}

// carries returns the numbers that this rank's next word carries, to be set.
func (a *Agreement) carries() []int64 { return a.mine[wordLen:] }

// carried returns the numbers that a rank's last word carried.
func (a *Agreement) carried(rank int) []int64 {
	return a.words[rank*len(a.mine):][wordLen:len(a.mine)]
}

// agree exchanges words with all ranks.
func (a *Agreement) agree(ctx context.Context, p *nn.Params, w word) (Report, error) {
	w.put(a.mine)
	if err := collective.AllGather(ctx, a.group, a.words, a.mine); err != nil {
		return Report{}, fmt.Errorf("trainer: exchanging step status at step %d: %w", w.step+1, err)
	}
	words := make([]word, a.group.Size())
	for r := range words {
		words[r] = getWord(a.words[r*len(a.mine):])
	}
	return outcome(words, a.group.View(), p)
}

// Outcome returns what Agreement.Step returns, from the words of the first ranks of v.
// words has WordLen elements for each of them, in order. Of p, errors use the names.
func Outcome(words []int64, v collective.View, p *nn.Params) (Report, error) {
	all := make([]word, len(words)/wordLen)
	for r := range all {
		all[r] = getWord(words[r*wordLen:])
	}
	return outcome(all, v, p)
}

// SumNotFinite returns the *NotFiniteError of a step, counted from 0, in which the sum of
// finite gradients of a parameter is not finite.
func (a *Agreement) SumNotFinite(step int, parameter string) error {
	return sumNotFinite(a.group.View(), step, parameter)
}

// Total returns the sum of the counts over all ranks, with the same bits on each. Ranks
// that counted different things get a *DivergedError.
func (a *Agreement) Total(ctx context.Context, own nn.Counts) (nn.Counts, error) {
	counted := slices.Sorted(maps.Keys(own))
	all := make([]int64, a.group.Size())
	if err := collective.AllGather(ctx, a.group, all, []int64{digest([]byte(strings.Join(counted, "\x00")))}); err != nil {
		return nil, err
	}
	if odd := differing(all, func(d int64) int64 { return d }); odd != nil {
		return nil, &DivergedError{What: "names of counts", Ranks: odd, Names: names(a.group.View(), odd)}
	}
	sums := make([]float64, len(counted))
	for i, name := range counted {
		sums[i] = own[name]
	}
	if err := collective.AllReduce(ctx, a.group, sums, collective.Sum); err != nil {
		return nil, err
	}
	total := nn.Counts{}
	for i, name := range counted {
		total[name] = sums[i]
	}
	return total, nil
}

// Finish returns a *DivergedError if ranks hold different values.
func (a *Agreement) Finish(ctx context.Context, p *nn.Params) error {
	values := make([]float32, p.Values.Len())
	a.backend.Read(values, p.Values)
	if err := a.backend.Sync(ctx); err != nil {
		return err
	}
	words := make([]int64, a.group.Size())
	if err := collective.AllGather(ctx, a.group, words, []int64{hash(values)}); err != nil {
		return fmt.Errorf("trainer: comparing the final values: %w", err)
	}
	if odd := differing(words, func(w int64) int64 { return w }); odd != nil {
		return &DivergedError{What: "final values of the parameters", Ranks: odd, Names: names(a.group.View(), odd)}
	}
	return nil
}
