package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"

	"github.com/ringtrain/ringtrain/trainer/data"
)

// A TextDataset is a Dataset of characters; its Info counts them. Your own program may
// register others.
type TextDataset interface {
	Dataset
	// Vocabulary returns the different characters to train on. It is nil for a dataset to
	// evaluate or predict.
	Vocabulary() *data.Vocabulary
	// Open reads the characters to train and to evaluate on, as ids of v. sum identifies
	// them.
	Open(ctx context.Context, v *data.Vocabulary) (train, test []int32, sum string, err error)
}

// textHoldout is the fraction of a text to evaluate on, unless --holdout says another.
const textHoldout = .1

// textData is the kind of data "text".
var textData = DataKind{
	Usage: "text:FILE", Doc: "a text in UTF-8", Options: []string{OptionHoldout, OptionTest}, Holdout: textHoldout, Train: trainText, Test: testText,
	Input: readTextInput, Suffixes: []string{".txt"},
}

// texts is a TextDataset of one file, the last part of which may be held out, or of two.
type texts struct {
	info       Info
	train      *data.TextInfo // nil if there is nothing to train on
	test       *data.TextInfo // nil if the test characters follow those to train on in train
	vocabulary *data.Vocabulary
}

var _ TextDataset = (*texts)(nil)

func trainText(path string, o Options) (Dataset, error) {
	train, err := scanText(path)
	if err != nil {
		return nil, err
	}
	d := &texts{train: train, info: Info{Name: "text:" + path, Train: train.Chars, Options: o}}
	if o.Test != "" {
		if d.test, err = scanText(o.Test); err != nil {
			return nil, &OptionError{Option: OptionTest, Text: fmt.Sprintf("--%s: %v", OptionTest, err)}
		}
		d.info.Test = d.test.Chars
	} else {
		d.info.Test = int(math.Round(o.Holdout * float64(train.Chars)))
		d.info.Train -= d.info.Test
	}
	switch {
	case d.info.Train < 1:
		return nil, optionErrorf(OptionHoldout, "%v of the %d characters of %s leaves none to train on; lower it", o.Holdout, train.Chars, path)
	case d.info.Test < 1: // evaluations of nothing would call any weights perfect
		return nil, optionErrorf(OptionHoldout, "%v leaves none of the %d characters of %s to evaluate on: raise it, or use --%s", o.Holdout, train.Chars, path, OptionTest)
	}
	d.size()
	d.vocabulary, err = train.Vocabulary(d.info.Train)
	return d, err
}

func testText(path string, _ bool) (Dataset, error) {
	test, err := scanText(path)
	if err != nil {
		return nil, err
	}
	d := &texts{test: test, info: Info{Name: "text:" + path, Test: test.Chars}}
	d.size()
	return d, nil
}

func scanText(path string) (*data.TextInfo, error) {
	if path == "" {
		return nil, fmt.Errorf("data %q names no file; write text:FILE", "text:")
	}
	t, err := data.ScanText(path)
	if err == nil && t.Chars == 0 {
		err = fmt.Errorf("%s is empty; there is nothing to learn from", path)
	}
	return t, err
}

// size sets the number of bytes, of one id for each character.
func (d *texts) size() { d.info.Bytes = 4 * (float64(d.info.Train) + float64(d.info.Test)) }

// Info implements Dataset.
func (d *texts) Info() Info { return d.info }

// Task implements Dataset.
func (d *texts) Task() string { return languageTask }

// Vocabulary implements TextDataset.
func (d *texts) Vocabulary() *data.Vocabulary { return d.vocabulary }

// Open implements TextDataset.
func (d *texts) Open(ctx context.Context, v *data.Vocabulary) (train, test []int32, sum string, err error) {
	hash := sha256.New()
	if d.train != nil {
		if train, err = d.train.IDs(ctx, v); err != nil {
			return nil, nil, "", err
		}
		train, test = train[:d.info.Train], train[d.info.Train:]
		fmt.Fprintln(hash, d.train.Sum, d.info.Train)
	}
	if d.test != nil {
		if test, err = d.test.IDs(ctx, v); err != nil {
			return nil, nil, "", err
		}
		fmt.Fprintln(hash, d.test.Sum)
	}
	return train, test, hex.EncodeToString(hash.Sum(nil)), nil
}
