package launch_test

import (
	"context"
	"fmt"

	"github.com/ringtrain/ringtrain/trainer/launch"
)

// Run two servers on two nodes, with a 1 Gbit/s cable between them.
func ExampleNamespaces() {
	ctx := context.Background()
	rate, err := launch.ParseRate("1gbit")
	if err != nil {
		fmt.Println(err)
		return
	}
	network, err := launch.Namespaces(ctx, 2, launch.NetworkOptions{Link: rate})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = network.Close() }()

	job := launch.Start(ctx, launch.Options{})
	for i := range network.Len() {
		command := launch.Command{Path: "my-server", Args: []string{"--listen", network.Addr(i).String() + ":8000"}}
		if _, err := job.Run(network.Command(i, command)); err != nil {
			job.Stop(err)
			break
		}
	}
	if err := job.Wait().Err(); err != nil {
		fmt.Println(err)
	}
}
