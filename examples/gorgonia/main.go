// Command gorgonia is ringtrain with a layer that is a graph of gorgonia.
//
//	go run ./examples/gorgonia train examples/gorgonia/highway.cfg --workers 4
package main

import (
	"fmt"
	"os"

	"github.com/ringtrain/ringtrain/nn/graph"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/cli"
	"github.com/ringtrain/ringtrain/trainer/config"
)

func main() {
	c := catalog.New()
	if err := c.Registry.Register("layers", "Highway.v1", config.Func{
		Doc:  "each output is a mixture of a Relu and of the input, and a gate learns which (Srivastava et al., 2015)",
		Make: func(config.Args) (any, error) { return &graph.Layer{Build: highway}, nil },
	}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(cli.Main(c, os.Args[1:], os.Stdout, os.Stderr))
}
