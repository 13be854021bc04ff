// Command ner writes the table of scripts/bench-ner.sh, which compares the training of a
// recognizer of named entities by ringtrain with one by spaCy; see spacy_ner.py.
//
//	ner [-csv FILE] [-require RATIO] [-note TEXT]... DIR
//
// DIR has a file STEPS-ROUND-PROGRAM.json for each run. The exit code is 1 if a file is not
// as it should be, or if the ratio of ringtrain's speed to spaCy's is lower than required.
package main

import (
	"io"
	"os"

	"github.com/ringtrain/ringtrain/scripts/peers/rounds"
)

func main() {
	os.Exit(exit(os.Args[1:], os.Stdout, os.Stderr))
}

func exit(args []string, stdout, stderr io.Writer) int {
	c := rounds.Command[run]{Name: "ner", Peer: "spaCy's", Read: readAll, WriteCSV: writeCSV, Write: write}
	return c.Exit(args, stdout, stderr)
}
