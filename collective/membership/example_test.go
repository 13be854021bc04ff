package membership_test

import (
	"context"
	"fmt"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/membership"
)

// Three workers of one machine find each other through the first of them.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var agents []*membership.Agent
	var seeds []string
	for local := range 3 {
		agent, err := membership.Start(ctx, membership.Config{
			Member: collective.Member{Name: fmt.Sprintf("vm1/%d", local), Node: "vm1", Local: local, LocalSize: 3},
			Join:   seeds,
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		defer agent.Close()
		agents = append(agents, agent)
		seeds = []string{agents[0].Addr().String()}
	}
	for _, agent := range agents {
		view, err := agent.View(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("rank", view.Self, "of", view.Size(), "is", view.Name(view.Self))
	}
	// Output:
	// rank 0 of 3 is vm1/0
	// rank 1 of 3 is vm1/1
	// rank 2 of 3 is vm1/2
}
