// Command actors trains parameters with several trainers, each a process of its own that
// keeps its part in a store. A second run resumes from what the first has stored.
//
//	go run ./examples/actors --dir params
//	go run ./examples/actors --dir params --local    # one trainer after the other, in this process
//
// It follows the actors of Ray's crash course: training is simulated by random updates
// and pauses.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"
)

// options are the flags.
type options struct {
	dir        string
	local      bool
	trainers   int
	parameters int
	iterations int
	pause      time.Duration

	trainer, store string // set in the processes of trainers: the name, and the address of the store
}

func main() {
	var o options
	flag.StringVar(&o.dir, "dir", "params", "directory of the store")
	flag.BoolVar(&o.local, "local", false, "train in this process, one trainer after the other")
	flag.IntVar(&o.trainers, "trainers", 5, "number of trainers")
	flag.IntVar(&o.parameters, "parameters", 100, "number of parameters of each trainer")
	flag.IntVar(&o.iterations, "iterations", 100, "updates by each trainer")
	flag.DurationVar(&o.pause, "pause", 100*time.Millisecond, "simulated time of an update")
	flag.StringVar(&o.trainer, "trainer", "", "run this trainer (used internally)")
	flag.StringVar(&o.store, "store", "", "address of the store (used internally)")
	flag.Parse()
	if err := run(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, "actors:", err)
		os.Exit(1)
	}
}
