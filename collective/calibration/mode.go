package calibration

import (
	"fmt"
	"strings"
)

// A Mode says where choices come from.
type Mode uint8

// The modes.
const (
	Off    Mode = iota // Default; nothing is measured
	Auto               // the Store; what it lacks is measured, for at most Bound
	Refine             // measured again, for at most RefineBound
)

// modes are the names of the modes.
var modes = [...]string{Off: "off", Auto: "auto", Refine: "refine"}

// A Policy says how the ranks of a host get their choices. That of the lowest rank
// counts. The zero value means Default.
type Policy struct {
	Mode  Mode
	Fixed map[string]int // choices that the user has fixed, by name
	Store *Store         // may be nil
}

// Start returns the choices of ranks that have measured nothing yet.
func (p *Policy) Start(ranks int) Choices {
	c := Default(ranks)
	if p.Store != nil {
		c.Chunk = p.Store.Host.chunk(ranks)
	}
	return c
}

// Parse reads a Policy from a list, separated by commas: at most one mode ("auto",
// "off" or "refine"; auto if there is none), and choices such as chunk=64K or
// read-most=off. "" is auto.
func Parse(text string) (Policy, error) {
	p := Policy{Mode: Auto}
	if text == "" {
		return p, nil
	}
	chosen := "" // the mode
	for part := range strings.SplitSeq(text, ",") {
		if part == "" { // perhaps of a variable that is not set
			return p, fmt.Errorf("%q has an empty element: remove a comma", text)
		}
		name, value, fixed := strings.Cut(part, "=")
		if !fixed {
			mode, err := parseMode(name)
			if err != nil {
				return p, err
			}
			if chosen != "" {
				return p, fmt.Errorf("%q has two modes, %s and %s: use one", text, chosen, name)
			}
			p.Mode, chosen = mode, name
			continue
		}
		f := find(name)
		if f == nil {
			return p, fmt.Errorf("unknown choice %q: use one of %s", name, strings.Join(names(), ", "))
		}
		n, err := parseValue(value)
		if err == nil {
			err = f.check(n)
		}
		if err != nil {
			return p, err
		}
		if p.Fixed == nil {
			p.Fixed = map[string]int{}
		}
		p.Fixed[name] = n
	}
	return p, nil
}

func parseMode(name string) (Mode, error) {
	for m, known := range modes {
		if name == known {
			return Mode(m), nil
		}
	}
	return Off, fmt.Errorf("%q is neither auto, off, refine nor a choice such as chunk=64K", name)
}

// parseValue reads what size writes.
func parseValue(text string) (int, error) {
	if text == "off" {
		return 0, nil
	}
	n, ok := ParseSize(text)
	if !ok || n > mostSize {
		return 0, fmt.Errorf("%q is not a size: use bytes, or a number with K, M or G, or off", text)
	}
	return n, nil
}

func find(name string) *field {
	for i := range fields {
		if fields[i].name == name {
			return &fields[i]
		}
	}
	return nil
}

func names() []string {
	var all []string
	for i := range fields {
		all = append(all, fields[i].name)
	}
	return all
}

// Fix returns c with the choices that the user has fixed.
func (p *Policy) Fix(c Choices) Choices {
	for name, value := range p.Fixed {
		if f := find(name); f != nil {
			*f.at(&c) = value
		}
	}
	return c
}
