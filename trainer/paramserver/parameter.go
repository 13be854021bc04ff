package paramserver

import (
	"encoding/json"
	"errors"
	"fmt"

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
	maxLayout   = 64 << 20 // bytes of an encoded layout
	maxElements = 1 << 40
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
	if a := l.Asynchronous; a != nil {
		return l, a.Policy.Check()
	}
	return l, nil
}
