// Command custom is ringtrain with a task of its own: it fits a curve to points, some of
// which are far off. Everything that the config names is in this directory: the dataset
// wave, the input format times, the task curve.v1, the loss Huber.v1 and the layer Sine.v1.
//
//	go run ./examples/custom train examples/custom/wave.cfg --data wave --workers 2
package main

import (
	"fmt"
	"os"

	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/cli"
)

func main() {
	c := catalog.New()
	if err := register(c); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(cli.Main(c, os.Args[1:], os.Stdout, os.Stderr))
}
