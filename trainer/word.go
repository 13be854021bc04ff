package trainer

import (
	"fmt"
	"math"
	"strings"

	"github.com/ringtrain/ringtrain/collective"
)

// A word is what each rank tells all others before the gradients of a step. It
// finds out ranks that have drifted apart before they spoil each other.
type word struct {
	step   int64
	stop   int64   // 1: wishes to stop
	weight int64   // rows
	loss   float64 // summed over the rows
	hash   int64   // of the values before the step; 0 on steps without
}

// wordLen is the number of int64 a word travels in: 64 bytes.
const wordLen = 8

func (w word) put(b []int64) {
	clear(b[:wordLen])
	b[0], b[1], b[2], b[3], b[4] = w.step, w.stop, w.weight, int64(math.Float64bits(w.loss)), w.hash
}

func getWord(b []int64) word {
	return word{step: b[0], stop: b[1], weight: b[2], loss: math.Float64frombits(uint64(b[3])), hash: b[4]}
}

// A DivergedError says that ranks which must be alike are not.
type DivergedError struct {
	What  string // "step", "values"
	Ranks []int  // those that differ from rank 0
	Names []string
}

// Error names the ranks.
func (e *DivergedError) Error() string {
	return fmt.Sprintf("trainer: %s differ between ranks: %s are not as rank 0: every machine must run the same command, version and data",
		e.What, strings.Join(e.Names, ", "))
}

// A NotFiniteError says that the loss of some ranks has become infinite or
// not a number.
type NotFiniteError struct {
	What  string // "loss of", "test loss after"
	Step  int
	Ranks []int
	Names []string
}

// Error names the step and the ranks.
func (e *NotFiniteError) Error() string {
	return fmt.Sprintf("trainer: the %s step %d is not finite on %s: lower the learn rate, or look at the data of that step", e.What, e.Step, strings.Join(e.Names, ", "))
}

// agree is what the words of all ranks come to, or which ranks differ.
func agree(words []word, v collective.View) (Report, error) {
	var r Report
	loss := 0.0
	for _, w := range words {
		r.Weight += int(w.weight)
		r.Stop = r.Stop || w.stop != 0
		loss += w.loss
	}
	if odd := differing(words, func(w word) int64 { return w.step }); odd != nil {
		return r, &DivergedError{What: "steps", Ranks: odd, Names: names(v, odd)}
	}
	if odd := differing(words, func(w word) int64 { return w.hash }); odd != nil {
		return r, &DivergedError{What: "values of the parameters", Ranks: odd, Names: names(v, odd)}
	}
	var bad []int
	for rank, w := range words {
		if math.IsNaN(w.loss) || math.IsInf(w.loss, 0) {
			bad = append(bad, rank)
		}
	}
	if bad != nil {
		return r, &NotFiniteError{What: "loss of", Step: int(words[0].step), Ranks: bad, Names: names(v, bad)}
	}
	r.Loss = loss / float64(max(r.Weight, 1))
	return r, nil
}

// differing is the ranks whose key is not rank 0's.
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
