package trainer

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
)

// A word is what each rank sends to all others about a step before the update. It
// catches ranks that have diverged before they spoil each other's values.
type word struct {
	step   int64
	stop   int64   // 1: this rank asks to stop
	weight int64   // rows
	loss   float64 // summed over the rows
	hash   int64   // of the values before the step; 0 on most steps
	bad    int64   // 1 + the index of a parameter whose gradient here is not finite, or 0
	change int64   // Step.Switch
}

// WordLen is the length of a word in int64: 64 bytes. See [Agreement.Word].
const WordLen = wordLen

const wordLen = 8

func (w word) put(b []int64) {
	clear(b[:wordLen])
	b[0], b[1], b[2], b[3], b[4], b[5], b[6] = w.step, w.stop, w.weight, int64(math.Float64bits(w.loss)), w.hash, w.bad, w.change
}

func getWord(b []int64) word {
	return word{step: b[0], stop: b[1], weight: b[2], loss: math.Float64frombits(uint64(b[3])), hash: b[4], bad: b[5], change: b[6]}
}

// A DivergedError reports that ranks which must be equal differ.
type DivergedError struct {
	What  string // "step", "values"
	Ranks []int  // that differ from rank 0
	Names []string
}

// Error names the ranks.
func (e *DivergedError) Error() string {
	return fmt.Sprintf("trainer: %s differ between ranks: %s differ from rank 0; run the same command and version with the same data on every machine",
		e.What, strings.Join(e.Names, ", "))
}

// outcome returns the report of a step from the words of all ranks, or an error that
// names the ranks that differ.
func outcome(words []word, v collective.View, p *nn.Params) (Report, error) {
	var r Report
	loss := 0.0
	for _, w := range words {
		r.Weight += int(w.weight)
		r.Stop = r.Stop || w.stop != 0
		r.Switch = cmp.Or(r.Switch, int(w.change))
		loss += w.loss
	}
	if odd := differing(words, func(w word) int64 { return w.step }); odd != nil {
		return r, &DivergedError{What: "steps", Ranks: odd, Names: names(v, odd)}
	}
	if odd := differing(words, func(w word) int64 { return w.hash }); odd != nil {
		return r, &DivergedError{What: "values of the parameters", Ranks: odd, Names: names(v, odd)}
	}
	if e := allFinite(words, v, p); e != nil {
		return r, e
	}
	r.Loss = loss / float64(max(r.Weight, 1))
	return r, nil
}

// allFinite checks losses first, then gradients.
func allFinite(words []word, v collective.View, p *nn.Params) error {
	e := &NotFiniteError{What: "loss of", Step: int(words[0].step) + 1}
	for rank, w := range words {
		if math.IsNaN(w.loss) || math.IsInf(w.loss, 0) {
			e.Ranks = append(e.Ranks, rank)
		}
	}
	if e.Ranks == nil {
		e.What = "gradient of"
		for rank, w := range words {
			if w.bad != 0 {
				e.Ranks = append(e.Ranks, rank)
			}
		}
	}
	if e.Ranks == nil {
		return nil
	}
	e.Parameter, e.Names = parameterName(p, words[e.Ranks[0]].bad), names(v, e.Ranks)
	return e
}

// differing returns the ranks whose key differs from rank 0's.
func differing[T any](words []T, key func(T) int64) []int {
	var odd []int
	for rank, w := range words {
		if key(w) != key(words[0]) {
			odd = append(odd, rank)
		}
	}
	return odd
}

func names(v collective.View, ranks []int) []string {
	out := make([]string, len(ranks))
	for i, r := range ranks {
		out[i] = fmt.Sprintf("rank %d (%s)", r, v.Name(r))
	}
	return out
}
