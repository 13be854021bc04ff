package text_test

import (
	"fmt"
	"strings"

	"github.com/ringtrain/ringtrain/nn/text"
)

func ExampleReadCoNLL() {
	corpus := "Casey B-PER\nwent O\nto O\nNew B-LOC\nYork I-LOC\n"
	for d, err := range text.ReadCoNLL(strings.NewReader(corpus), text.Options{Name: "train.conll"}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(d.Words)
		fmt.Println(d.Tags())
	}
	// Output:
	// [Casey went to New York]
	// [U-PER O O B-LOC L-LOC]
}

func ExampleTokenize() {
	d := text.Tokenize("Casey isn't in New York.")
	fmt.Printf("%q\n", d.Words)
	fmt.Println(d.Text())
	// Output:
	// ["Casey" "isn't" "in" "New" "York" "."]
	// Casey isn't in New York.
}
