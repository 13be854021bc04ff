package checkpoint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Float32 is the Type of an Entry with 32-bit float elements.
const Float32 = string(f32)

// A Header describes the tensors of a file without their values. Load has compared it
// with the length of the file.
type Header struct {
	Tensors  []Entry // by offset
	Metadata map[string]string
}

// An Entry describes a tensor without its values.
type Entry struct {
	Name  string
	Type  string // the format's name for it, such as "F32"
	Shape []int
}

// A Check inspects the header of a file and returns an error to reject it, before memory
// is allocated for any tensor.
type Check func(Header) error

func (h *header) public() Header {
	out := Header{Metadata: h.metadata}
	for _, s := range h.slots {
		out.Tensors = append(out.Tensors, Entry{Name: s.name, Type: string(s.dtype), Shape: slices.Clone(s.shape)})
	}
	return out
}

// Parts groups the tensors of a Training by purpose. Their names are those of parameters.
type Parts[T Named | Entry] struct {
	Weights   []T
	Slots     map[string][]T
	Residuals [][]T // by rank
	Best      []T   // weights of the best evaluation
}

// Parts groups the tensors in a Training's header.
func (h Header) Parts() (Parts[Entry], error) {
	return sortParts(h.Tensors, func(e *Entry) *string { return &e.Name })
}

// sortParts groups tensors by the prefixes of their names, and removes the prefixes.
func sortParts[T Named | Entry](tensors []T, name func(*T) *string) (Parts[T], error) {
	p := Parts[T]{Slots: map[string][]T{}}
	for _, t := range tensors {
		full := *name(&t)
		if rest, ok := strings.CutPrefix(full, residualPrefix); ok {
			rank, parameter, _ := strings.Cut(rest, "/")
			*name(&t) = parameter
			if !p.addResidual(rank, t) {
				return p, fmt.Errorf("tensor %q is out of order: residuals must be stored rank by rank", full)
			}
			continue
		}
		if rest, ok := strings.CutPrefix(full, bestPrefix); ok {
			*name(&t) = rest
			p.Best = append(p.Best, t)
			continue
		}
		rest, isSlot := strings.CutPrefix(full, slotPrefix)
		if !isSlot {
			p.Weights = append(p.Weights, t)
			continue
		}
		slot, parameter, ok := strings.Cut(rest, "/")
		if !ok {
			return p, fmt.Errorf("tensor %q does not name a parameter", full)
		}
		*name(&t) = parameter
		p.Slots[slot] = append(p.Slots[slot], t)
	}
	return p, nil
}

// addResidual adds a tensor to those of a rank. It returns false unless the ranks
// come in order.
func (p *Parts[T]) addResidual(rank string, t T) bool {
	r, err := strconv.Atoi(rank)
	switch {
	case err == nil && r == len(p.Residuals):
		p.Residuals = append(p.Residuals, nil)
	case err != nil || r < 0 || r != len(p.Residuals)-1:
		return false
	}
	p.Residuals[r] = append(p.Residuals[r], t)
	return true
}
