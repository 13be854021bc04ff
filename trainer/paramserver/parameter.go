package paramserver

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/ringtrain/ringtrain/nn"
)

// A parameter is what servers know about a parameter of the workers' model.
type parameter struct {
	Name     string  `json:"name"`
	Offset   int     `json:"offset"` // of the first element in the workers' arenas
	Len      int     `json:"len"`    // elements
	Momentum float32 `json:"momentum,omitempty"`
}

// A layout is what servers know about the workers' model and optimizer.
type layout struct {
	Parameters []parameter `json:"parameters"` // in the order of the arenas
	Slots      []string    `json:"slots"`      // of the optimizer
	// Buckets are the first parameters of the buckets in which gradients come, from the last
	// bucket to the first. nil is one bucket of all.
	Buckets []int `json:"buckets,omitempty"`
	// Asynchronous is set if the workers use Async.
	Asynchronous *asynchronous `json:"asynchronous,omitempty"`
}

// asynchronous is what servers know about Async.
type asynchronous struct {
	Policy Policy `json:"policy"`
	Limit  int    `json:"limit"` // on the number of updates; 0: none
}

// Limits for what a server accepts.
const (
	maxLayout   = 64 << 20                  // bytes of an encoded layout
	maxElements = min(1<<40, math.MaxInt/2) // so that the end of a parameter fits an int
)

// layoutOf returns the layout of p for an optimizer with these slots.
func layoutOf(p *nn.Params, slots []string) layout {
	l := layout{Slots: slots}
	for _, q := range p.List {
		l.Parameters = append(l.Parameters, parameter{Name: q.Name, Offset: q.Offset, Len: q.Values.Len(), Momentum: q.Momentum})
	}
	return l
}

// encode returns the wire form of a layout.
func (l layout) encode() ([]byte, error) {
	b, err := json.Marshal(l)
	if err == nil && len(b) > maxLayout {
		err = errors.New("paramserver: the names of the parameters are too long for a server")
	}
	return b, err
}

// decodeLayout returns the layout that encode has written. It accepts only parameters that
// follow each other without overlap.
func decodeLayout(b []byte) (layout, error) {
	var l layout
	if len(b) > maxLayout {
		return l, fmt.Errorf("paramserver: a layout has at most %d bytes, not %d", maxLayout, len(b))
	}
	if err := json.Unmarshal(b, &l); err != nil {
		return l, fmt.Errorf("paramserver: reading the layout of the parameters: %w", err)
	}
	end := 0
	for _, q := range l.Parameters {
		if q.Len < 1 || q.Len > maxElements || q.Offset < end || q.Offset > maxElements {
			return l, fmt.Errorf("paramserver: parameter %q cannot have %d elements at %d, after %d others", q.Name, q.Len, q.Offset, end)
		}
		if !(q.Momentum >= 0 && q.Momentum <= 1) {
			return l, fmt.Errorf("paramserver: the momentum of %q must be from 0 to 1, not %v", q.Name, q.Momentum)
		}
		end = q.Offset + q.Len
	}
	end = len(l.Parameters)
	for _, first := range l.Buckets {
		if first < 0 || first >= end {
			return l, fmt.Errorf("paramserver: a bucket cannot begin at parameter %d, before one that ends at %d", first, end)
		}
		end = first
	}
	if len(l.Buckets) > 0 && end > 0 {
		return l, fmt.Errorf("paramserver: %d parameters are in no bucket", end)
	}
	if a := l.Asynchronous; a != nil {
		return l, a.Policy.Check()
	}
	return l, nil
}

// inBuckets returns l with the first parameters of buckets of these lengths, which are those
// of trainer.Buckets.
func (l layout) inBuckets(lens []int) layout {
	if len(lens) < 2 {
		return l
	}
	at := 0
	for _, n := range lens {
		at += n
	}
	for _, n := range lens {
		at -= n
		first, _ := slices.BinarySearchFunc(l.Parameters, at, func(q parameter, at int) int { return cmp.Compare(q.Offset, at) })
		l.Buckets = append(l.Buckets, first)
	}
	return l
}

// bucket returns where a bucket begins in the workers' arenas.
func (l layout) bucket(b int) int {
	if len(l.Buckets) == 0 {
		return 0
	}
	return l.Parameters[l.Buckets[b]].Offset
}

// arena returns the length of the workers' arenas, without padding at the end.
func (l layout) arena() int {
	if len(l.Parameters) == 0 {
		return 0
	}
	last := l.Parameters[len(l.Parameters)-1]
	return last.Offset + last.Len
}
