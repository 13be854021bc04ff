package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/membership"
)

// Each process of a job does this. Here the job has one process.
func Example() {
	ctx := context.Background()
	node, err := cluster.Join(ctx, cluster.Config{Cluster: "example"}) // on several machines: Nodes, Bind and Join
	if err != nil {
		fmt.Println(err)
		return
	}
	defer node.Close()
	group, err := node.Group(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	gradients := []float32{1, 2, 3}
	err = collective.AllReduce(ctx, group, gradients, collective.Mean)
	fmt.Println(group.Size(), gradients, err)
	// Output: 1 [1 2 3] <nil>
}

// A failed call breaks the Group for good. The ranks that are left make another Group and
// repeat the call, from fresh inputs: after a failed call the vector may hold anything. A rank
// may have finished a call that failed on others, so all of them first take over the state of
// the one that has come furthest.
func ExampleNode_Regroup() {
	ctx := context.Background()
	node, err := cluster.Join(ctx, cluster.Config{Cluster: "example"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer node.Close()
	group, err := node.Group(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	state := []int64{0, 0} // calls that this rank has finished, and the total of their results
	add := func(ctx context.Context) error {
		sum := []int64{7}
		if err := collective.AllReduce(ctx, group, sum, collective.Sum); err != nil {
			return err
		}
		state[0], state[1] = state[0]+1, state[1]+sum[0]
		return nil
	}
	catchUp := func() error {
		finished := make([]int64, group.Size())
		if err := collective.AllGather(ctx, group, finished, state[:1]); err != nil {
			return err
		}
		newest := slices.Clone(state)
		if err := collective.Broadcast(ctx, group, newest, slices.Index(finished, slices.Max(finished))); err != nil {
			return err
		}
		copy(state, newest)
		return nil
	}

	impatient, cancel := context.WithCancel(ctx)
	cancel() // this rank gives up
	err = add(impatient)
	for err != nil || state[0] < 3 {
		if err == nil {
			err = add(ctx)
			continue
		}
		group, err = node.Regroup(ctx, group)
		switch {
		case errors.Is(err, membership.ErrExpelled): // the others continued
			fmt.Println("nothing left to do:", err)
			return
		case err != nil: // membership.ErrMinority: too few are left
			fmt.Println("start again from the last checkpoint:", err)
			return
		}
		err = catchUp()
	}
	fmt.Println("epoch", group.View().Epoch, "size", group.Size(), "calls", state[0], "total", state[1])
	// Output: epoch 2 size 1 calls 3 total 21
}

// Two processes of one host sum vectors in memory that both can reach, so nothing
// is copied. Here both are in one process.
func ExampleNode_Alloc() {
	ctx := context.Background()
	first, err := cluster.Join(ctx, cluster.Config{Cluster: "alloc", Node: "vm", LocalSize: 2})
	if err != nil {
		panic(err)
	}
	defer first.Close()
	second, err := cluster.Join(ctx, cluster.Config{Cluster: "alloc", Node: "vm", LocalSize: 2, Local: 1, Join: []string{first.Addr().String()}})
	if err != nil {
		panic(err)
	}
	defer second.Close()

	var both sync.WaitGroup
	for _, n := range []*cluster.Node{first, second} {
		both.Go(func() {
			v, err := n.Alloc(collective.Float32, 100_000)
			if err != nil {
				panic(err)
			}
			g, err := n.Group(ctx)
			if err != nil {
				panic(err)
			}
			gradients := collective.Elements[float32](v)
			gradients[99_999] = float32(1 + g.Rank())
			if err := g.AllReduce(ctx, v, collective.Mean); err != nil {
				panic(err)
			}
			if g.Rank() == 0 {
				fmt.Println(gradients[99_999])
			}
		})
	}
	both.Wait()
	// Output: 1.5
}
