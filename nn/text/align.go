package text

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// annotate sets the entities of d. Those that do not begin and end with words, or overlap
// an earlier one, are returned; their words are Missing unless they belong to another.
func (d *Doc) annotate(entities []extent) (unaligned []extent, err error) {
	offsets := d.Offsets()
	chars := 0
	if n := len(offsets); n > 0 {
		chars = offsets[n-1].End
		if d.spaced(n - 1) {
			chars++
		}
	}
	d.Annotated, d.Entities, d.Missing = true, nil, nil
	entities = slices.SortedStableFunc(slices.Values(entities), func(a, b extent) int { return cmp.Compare(a.Start, b.Start) })
	free := 0 // the first word after all entities
	for _, e := range entities {
		switch {
		case e.Label == "":
			return nil, errors.New("an entity has no label")
		case e.Start < 0 || e.End <= e.Start || e.End > chars:
			return nil, fmt.Errorf("the entity [%d, %d, %q] must be within the %d characters of the text, and not be empty", e.Start, e.End, e.Label, chars)
		}
		// No word ends after a space at the end of the text.
		s := Span{touched(offsets, e.Start), min(touched(offsets, e.End-1)+1, len(offsets)), e.Label}
		for s.End > s.Start && offsets[s.End-1].Start >= e.End {
			s.End--
		}
		if s.End > s.Start && s.Start >= free && offsets[s.Start].Start == e.Start && offsets[s.End-1].End == e.End {
			d.Entities, free = append(d.Entities, s), s.End
		} else {
			unaligned = append(unaligned, e)
			d.miss(s)
		}
	}
	d.SetTags(d.Tags()) // no word of an entity is missing
	return unaligned, nil
}

// touched returns the first word that ends after a code point.
func touched(offsets []Range, at int) int {
	i, _ := slices.BinarySearchFunc(offsets, at, func(w Range, at int) int {
		if w.End > at {
			return 1
		}
		return -1
	})
	return i
}

// miss marks the words of a span as Missing.
func (d *Doc) miss(s Span) {
	for i := s.Start; i < s.End; i++ {
		if d.Missing == nil {
			d.Missing = make([]bool, d.Len())
		}
		d.Missing[i] = true
	}
}
