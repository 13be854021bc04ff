package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"

	"github.com/ringtrain/ringtrain/nn/text"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// nerTask is the name of the task that finds entities.
const nerTask = "ner.v1"

// A DocDataset is a Dataset of documents with entities; its Info counts documents. Your own
// program may register others.
type DocDataset interface {
	Dataset
	// Labels has the number of words in the entities of each label to train on. It is nil
	// for a dataset to evaluate or predict.
	Labels() map[string]int
	// Words returns the numbers of words to train and to evaluate on.
	Words() (train, test int)
	// Open reads the documents to train and to evaluate on. sum identifies them.
	Open(ctx context.Context) (train, test []*text.Doc, sum string, err error)
}

// docData is the kind of data "ner".
var docData = DataKind{
	Usage: "ner:DIR", Doc: "named entities in train.* and dev.*",
	Train: trainDocs, Test: testDocs, Input: readDocInput, Suffixes: docSuffixes(),
}

// docSuffixes are the ends of names of corpora, but for raw text: .txt is of the kind text.
func docSuffixes() (all []string) {
	for _, f := range text.Formats() {
		if f.Name != "txt" {
			all = append(all, f.Suffixes...)
		}
	}
	return all
}

// docs is a DocDataset of one file or two.
type docs struct {
	info        Info
	train, test *data.DocumentsInfo // nil if there are none
}

var _ DocDataset = (*docs)(nil)

func trainDocs(dir string, _ Options) (Dataset, error) {
	d := &docs{info: Info{Name: "ner:" + dir}}
	for _, part := range []struct {
		name string
		to   **data.DocumentsInfo
	}{{"train", &d.train}, {"dev", &d.test}} {
		path, err := findDocs(dir, part.name)
		if err == nil {
			*part.to, err = data.ScanDocuments(path)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(d.train.Labels) == 0 {
		return nil, fmt.Errorf("%s has no entities to learn from", d.train.Path)
	}
	if !d.test.Annotated {
		return nil, fmt.Errorf("%s has no documents with entities to compare predictions with; annotate some", d.test.Path)
	}
	d.describe()
	return d, nil
}

// testDocs finds dev.* of a directory, or one file.
func testDocs(path string, _ bool) (Dataset, error) {
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		if path, err = findDocs(path, "dev"); err != nil {
			return nil, err
		}
	}
	test, err := data.ScanDocuments(path)
	if err != nil {
		return nil, err
	}
	d := &docs{info: Info{Name: "ner:" + path}, test: test}
	d.describe()
	return d, nil
}

func findDocs(dir, part string) (string, error) {
	if dir == "" {
		return "", fmt.Errorf("data %q names no directory; write ner:DIR", "ner:")
	}
	return data.FindDocuments(dir, part)
}

// describe completes info.
func (d *docs) describe() {
	for _, part := range []*data.DocumentsInfo{d.train, d.test} {
		if part == nil {
			continue
		}
		d.info.Bytes += docBytes(part.Docs, part.Words)
		if part.Warning != "" {
			d.info.Warnings = append(d.info.Warnings, part.Warning)
		}
	}
	if d.train != nil {
		d.info.Train = d.train.Docs
	}
	d.info.Test = d.test.Docs
}

// docBytes estimates what documents take in memory: a word shares its text with others.
func docBytes(docs, words int) float64 { return float64(200*docs + 24*words) }

// Info implements Dataset.
func (d *docs) Info() Info { return d.info }

// Task implements Dataset.
func (d *docs) Task() string { return nerTask }

// Labels implements DocDataset.
func (d *docs) Labels() map[string]int {
	if d.train == nil {
		return nil
	}
	return d.train.Labels
}

// Words implements DocDataset.
func (d *docs) Words() (train, test int) {
	if d.train != nil {
		train = d.train.Words
	}
	return train, d.test.Words
}

// Open implements DocDataset.
func (d *docs) Open(ctx context.Context) (train, test []*text.Doc, sum string, err error) {
	hash := sha256.New()
	if d.train != nil {
		if train, err = d.train.Documents(ctx); err != nil {
			return nil, nil, "", err
		}
		fmt.Fprintln(hash, d.train.Sum)
	}
	if test, err = d.test.Documents(ctx); err != nil {
		return nil, nil, "", err
	}
	fmt.Fprintln(hash, d.test.Sum)
	return train, test, hex.EncodeToString(hash.Sum(nil)), nil
}
