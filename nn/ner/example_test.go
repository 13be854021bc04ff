package ner_test

import (
	"fmt"

	"github.com/ringtrain/ringtrain/nn/ner"
	"github.com/ringtrain/ringtrain/nn/text"
)

// The moves for the labels of a corpus, in which 7 words are in names of people and 3 in names
// of places.
func ExampleNewMoves() {
	m, err := ner.NewMoves(ner.Order(map[string]int{"LOC": 3, "PER": 7}))
	if err != nil {
		fmt.Println(err)
		return
	}
	for move := range m.Len() {
		fmt.Print(m.Name(move), " ")
	}
	// Output: B-PER B-LOC I-PER I-LOC L-PER L-LOC U-PER U-LOC U- O
}

func ExampleCompare() {
	d := &text.Doc{Words: []string{"Casey", "left", "New", "York"}, Annotated: true, Entities: []text.Span{{Start: 0, End: 1, Label: "PER"}, {Start: 2, End: 4, Label: "LOC"}}}
	found := []text.Span{{Start: 0, End: 1, Label: "PER"}, {Start: 3, End: 4, Label: "LOC"}}
	var all ner.Tally
	ner.Compare(d, found, func(_ string, t ner.Tally) {
		all = ner.Tally{Right: all.Right + t.Right, Wrong: all.Wrong + t.Wrong, Missed: all.Missed + t.Missed}
	})
	fmt.Println(all.Precision(), all.Recall(), all.F())
	// Output: 0.5 0.5 0.5
}
