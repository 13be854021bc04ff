// Command ray writes the table of scripts/bench-ray.sh, which compares trainings with a
// parameter server by ringtrain with those by actors of Ray; see parameter_server.py.
//
//	ray [-csv FILE] [-plots DIR] [-require RATIO] [-note TEXT]... DIR
//
// DIR has a file TRAINING-ROUND-PROGRAM.json for each run. With -plots, runs have evaluations,
// and the accuracy of each network is drawn over the training rows. The exit code is 1 if a file is
// not as it should be, or if the ratio of ringtrain's speed to Ray's is lower than required.
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
	c := rounds.Command[run]{Name: "ray", Peer: "Ray's", Read: readAll, WriteCSV: writeCSV, Plot: draw, Write: write}
	return c.Exit(args, stdout, stderr)
}
