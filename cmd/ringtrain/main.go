// Command ringtrain trains neural networks on many machines at once.
// "ringtrain --help" lists what it does.
//
// Package trainer/cli has the commands. A worker process is this program, started again:
// see startWorker and runWorker in trainer/job/crew.
package main

import (
	"os"

	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/cli"
)

func main() {
	os.Exit(cli.Main(catalog.New(), os.Args[1:], os.Stdout, os.Stderr))
}
