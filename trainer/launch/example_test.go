//go:build unix

package launch_test

import (
	"context"
	"fmt"
	"os"

	"github.com/ringtrain/ringtrain/trainer/launch"
)

// Start two workers. The second fails, and the first is told to exit when its grace
// period is over.
func ExampleStart() {
	job := launch.Start(context.Background(), launch.Options{Grace: -1})
	for i, script := range []string{"exec sleep 1000", "echo loading; echo no data >&2; exit 4"} {
		name := fmt.Sprintf("worker %d", i)
		_, err := job.Run(launch.Command{
			Name: name,
			Path: "sh", Args: []string{"-c", script},
			Stdout: func(line []byte) { fmt.Printf("[%s] %s\n", name, line) },
		})
		if err != nil {
			job.Stop(err)
			break
		}
	}
	outcome := job.Wait()
	fmt.Println(outcome.Root.Name, outcome.Root.Code, outcome.Root.LastLines)
	fmt.Println(outcome.Exits[0].Signal, outcome.Exits[0].ByUs)
	// Output:
	// [worker 1] loading
	// worker 1 4 [no data]
	// terminated true
}

// A worker runs under a context that ends with its launcher.
func ExampleLifeline() {
	ctx, stop, err := launch.Lifeline(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	defer stop()
	select {
	case <-ctx.Done():
		fmt.Println("ended:", context.Cause(ctx))
	default:
		fmt.Println("at work") // this example has no launcher
	}
	// Output: at work
}
