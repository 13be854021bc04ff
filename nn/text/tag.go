package text

import (
	"fmt"
	"strings"
)

// An Action is what a tag says about its word. The numbers are those of the moves of
// spaCy's transition system.
type Action uint8

// The actions. All but Missing and Out have a label.
const (
	Missing Action = iota // it is unknown whether the word belongs to an entity
	Begin                 // first of several words of an entity
	In                    // neither first nor last
	Last                  // last of several words
	Unit                  // the only word of an entity
	Out                   // of no entity
)

// actionLetters are the actions as letters of tags.
const actionLetters = "-BILUO"

// A Tag says which place a word has in an entity, and the label of that entity.
type Tag struct {
	Action Action
	Label  string
}

// String returns a tag such as "B-ORG", "O" or, if it is missing, "-".
func (t Tag) String() string {
	if t.Action == Missing || t.Action == Out {
		return actionLetters[t.Action : t.Action+1]
	}
	return actionLetters[t.Action:t.Action+1] + "-" + t.Label
}

// ParseTag returns the tag that s stands for: "O", "-" or a letter, a dash and a label. The
// letters E and S of the scheme IOBES mean Last and Unit.
func ParseTag(s string) (Tag, error) {
	switch s {
	case "O":
		return Tag{Action: Out}, nil
	case "-":
		return Tag{}, nil
	}
	letter, label, _ := strings.Cut(s, "-")
	if label == "" {
		return Tag{}, fmt.Errorf("the tag must be O, - or a letter and a label, as in B-ORG, not %.40q", s)
	}
	switch letter {
	case "B":
		return Tag{Begin, label}, nil
	case "I":
		return Tag{In, label}, nil
	case "L", "E":
		return Tag{Last, label}, nil
	case "U", "S":
		return Tag{Unit, label}, nil
	}
	return Tag{}, fmt.Errorf("the tag %.40q must begin with B, I, L, U, E or S", s)
}

// spans returns the entities that tags of any scheme mark. No scheme contradicts another,
// so nothing depends on which one it is. An entity begins at Begin and Unit, and at In and
// Last unless these continue an entity with the same label; it ends after Last and Unit.
// These are the rules of spaCy's iob_to_biluo, except that there Last does not end an
// entity.
func spans(tags []Tag) (entities []Span) {
	open := false // the last entity may continue
	for i, t := range tags {
		switch t.Action {
		case Missing, Out:
			open = false
			continue
		case In, Last:
			if open && entities[len(entities)-1].Label == t.Label {
				entities[len(entities)-1].End++
				break
			}
			fallthrough
		case Begin, Unit:
			entities = append(entities, Span{i, i + 1, t.Label})
		}
		open = t.Action == Begin || t.Action == In
	}
	return entities
}
