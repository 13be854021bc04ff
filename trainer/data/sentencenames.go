package data

import (
	"strings"

	"github.com/ringtrain/ringtrain/nn/text"
)

// entityLabels are the labels of the kinds of entities in clauses, as in CoNLL-2003.
var entityLabels = map[string]string{"PER": "PER", "LOC": "LOC", "ORG": "ORG", "DEMONYM": "MISC", "EVENT": "MISC"}

// nameForms are how names of each kind are made. A star is a root. Frequent forms are
// repeated. A root alone may name a person, a place or an organisation. The suffixes tell
// the kind of a new name, so that a model that knows only whole words finds fewer.
var nameForms = []struct {
	kind  string
	forms []string
}{
	{"PER", []string{"* *", "* *", "* *", "* *son", "*", "*", "*", "*", "*", "*son", "*son", "*ov", "*ov", "* van *", "*-* *", "* de la *"}},
	{"LOC", []string{"*", "*", "*", "*", "*", "*", "*ville", "*ville", "*burg", "*burg", "*land", "*land", "New *", "* Valley", "Port *", "North * Islands", "Republic of New *"}},
	{"ORG", []string{"*", "*", "*", "*", "*", "*", "*tech", "*tech", "*soft", "*soft", "* Corp", "* Ltd", "* Group", "* and * Ltd", "Institute of *", "Bank of New *", "* United", "* Institute of Applied Science"}},
	{"DEMONYM", []string{"*ian", "*ese"}},
	{"EVENT", []string{"* Cup", "* Peace Prize", "Treaty of *", "* Open", "* Games"}},
}

// Sizes of the lexicons. What only the second part has follows what both have.
const (
	sharedRoots, newRoots       = 400, 200
	sharedNouns, newNouns       = 300, 150
	sharedEntities, newEntities = 250, 150 // of each kind
)

// names are the lexicons of a seed.
type names struct {
	roots    []string            // of names, capitalized
	nouns    []string            // common nouns, made like roots
	entities map[string][]string // by kind
}

// newNames draws the lexicons. A root may name a person, a place and an organisation, so
// that only the context tells them apart.
func newNames(seed uint64) *names {
	d := scribe{draws: newDraws(seed, lexiconStream)}
	n := &names{entities: map[string][]string{}}
	taken := map[string]bool{}
	word := func() string {
		for {
			if w := d.word(); !taken[w] {
				taken[w] = true
				return w
			}
		}
	}
	for range sharedRoots + newRoots {
		w := word()
		n.roots = append(n.roots, strings.ToUpper(w[:1])+w[1:])
	}
	for range sharedNouns + newNouns {
		n.nouns = append(n.nouns, word())
	}
	for _, k := range nameForms {
		for i := range sharedEntities + newEntities {
			roots := n.roots[:sharedRoots]
			if i >= sharedEntities {
				roots = n.roots[sharedRoots:]
			}
			n.entities[k.kind] = append(n.entities[k.kind], d.entity(k.forms[d.pick(len(k.forms))], roots))
		}
	}
	return n
}

// A scribe draws words and sentences.
type scribe struct {
	draws
	drawn uint64
}

// pick returns a number in 0 .. n-1.
func (s *scribe) pick(n int) int {
	s.drawn++
	return s.below(s.drawn, n)
}

// chance reports true in this many of 100 cases.
func (s *scribe) chance(percent int) bool { return s.pick(100) < percent }

// word returns two or three syllables.
func (s *scribe) word() string {
	const vowels = "aeiou"
	var b strings.Builder
	for range 2 + s.pick(2) {
		b.WriteString(onsets[s.pick(len(onsets))])
		b.WriteByte(vowels[s.pick(len(vowels))])
	}
	if s.chance(40) {
		b.WriteString(codas[s.pick(len(codas))])
	}
	return b.String()
}

var (
	onsets = [...]string{"b", "d", "f", "g", "h", "j", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z", "br", "dr", "kr", "st", "tr", "sh"}
	codas  = [...]string{"n", "r", "s", "l", "th", "m"}
)

// entity returns a name of a form.
func (s *scribe) entity(form string, roots []string) string {
	if form == "*" {
		roots = roots[:len(roots)/10] // few, so that kinds share them
	}
	var b strings.Builder
	for i, between := range strings.Split(form, "*") {
		if i > 0 {
			b.WriteString(roots[s.pick(len(roots))])
		}
		b.WriteString(between)
	}
	return b.String()
}

// mention returns an entity of a kind. In the second part 30 % have names that the first
// part never has.
func (n *names) mention(s *scribe, kind string, second bool) string {
	all := n.entities[kind]
	if second && s.chance(30) {
		return all[sharedEntities+s.pick(newEntities)]
	}
	return all[s.skewed(sharedEntities)]
}

// noun returns a common noun, chosen like an entity.
func (n *names) noun(s *scribe, second bool) string {
	if second && s.chance(30) {
		return n.nouns[sharedNouns+s.pick(newNouns)]
	}
	return n.nouns[s.skewed(sharedNouns)]
}

// skewed returns a number from 0 to n-1; small numbers are more likely.
func (s *scribe) skewed(n int) int { return min(s.pick(n), s.pick(n)) }

// annotated returns a document of words and entities that are divided by spaces.
func annotated(parts []sentencePart) *text.Doc {
	d := &text.Doc{Annotated: true}
	for _, p := range parts {
		start := d.Len()
		for w := range strings.FieldsSeq(p.words) {
			if n := d.Len(); n > 0 {
				d.Spaces[n-1] = w != "," && w != "."
			}
			d.Words, d.Spaces = append(d.Words, w), append(d.Spaces, false)
		}
		if p.label != "" {
			d.Entities = append(d.Entities, text.Span{Start: start, End: d.Len(), Label: p.label})
		}
	}
	return d
}
