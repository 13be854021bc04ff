// Command emulate builds the emulator into a directory and prints the variables that make
// programs use it.
//
//	eval "$(go run ./scripts/gpu/emulate DIRECTORY)"
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/ringtrain/ringtrain/cuda/emulator"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "emulate: want a directory to build in")
		os.Exit(2)
	}
	env, err := emulator.Build(context.Background(), os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for _, setting := range env {
		fmt.Printf("export %q\n", setting)
	}
}
