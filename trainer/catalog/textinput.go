package catalog

import (
	"context"
	"errors"

	"github.com/ringtrain/ringtrain/trainer/data"
)

// textInput is a TextDataset of the characters of files or of a stream, which follow each
// other as one text.
type textInput struct {
	name  string // of the first file
	chars []rune
}

var _ TextDataset = (*textInput)(nil)

// readTextInput reads all characters, because a model predicts each from those before it.
func readTextInput(in Input) (Dataset, error) {
	t := &textInput{}
	for part, err := range in.Parts() {
		if err != nil {
			return nil, err
		}
		chars, err := data.ReadChars(part)
		if err != nil {
			return nil, within(part.Name, err)
		}
		if t.name == "" {
			t.name = part.Name
		}
		t.chars = append(t.chars, chars...)
	}
	if len(t.chars) == 0 {
		return nil, within(t.name, errors.New("is empty; there is nothing to predict"))
	}
	return t, nil
}

// Info implements Dataset.
func (t *textInput) Info() Info {
	return Info{Name: t.name, Test: len(t.chars), Bytes: 4 * float64(len(t.chars))}
}

// Task implements Dataset.
func (t *textInput) Task() string { return languageTask }

// Vocabulary implements TextDataset.
func (t *textInput) Vocabulary() *data.Vocabulary { return nil }

// Open implements TextDataset.
func (t *textInput) Open(_ context.Context, v *data.Vocabulary) (train, test []int32, sum string, err error) {
	for _, c := range t.chars {
		test = append(test, v.ID(c))
	}
	return nil, test, "", nil
}
