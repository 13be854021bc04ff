package keyed_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer/paramserver/keyed"
	"github.com/ringtrain/ringtrain/trainer/store"
)

// Two clients fit a line to their own points, and a server holds it. Here all three are
// goroutines; in a job they are processes, and collective/cluster makes the group.
func Example() {
	const clients, servers = 2, 1
	ctx := context.Background()
	backend := cpu.New(cpu.Options{})
	defer backend.Close()
	held := keyed.NewLocal(backend, optim.SGD{LearnRate: optim.Constant(.1)})
	views, transports := collective.Local(clients + servers)
	var ranks sync.WaitGroup
	for r := range views {
		ranks.Go(func() {
			g := collective.NewGroup(views[r], collective.OverTransport(views[r], transports[r]), collective.Options{})
			defer g.Close()
			var err error
			if r < clients {
				err = fit(ctx, g, servers)
			} else {
				err = keyed.Serve(ctx, g, servers, held)
			}
			if err != nil {
				fmt.Println(err)
				g.Abort(err) // so that the others do not wait
			}
		})
	}
	ranks.Wait()
	v, version, err := held.Get(ctx, "line")
	if err != nil {
		fmt.Println(err)
		return
	}
	line, err := store.Floats[float32](v)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("version %d: y = %.2fx + %.2f\n", version, line[0], line[1])
	// Output: version 1001: y = 2.00x + 1.00
}

// fit is what each client does.
func fit(ctx context.Context, g *collective.Group, servers int) error {
	s, err := keyed.Connect(ctx, g, servers)
	if err != nil {
		return err
	}
	if err := descend(ctx, s, g.Rank()); err != nil {
		return err
	}
	return s.End(ctx)
}

// descend updates the line 500 times. It does not know where the store is.
func descend(ctx context.Context, s keyed.Store, client int) error {
	zero, err := store.Tensor([]float32{0, 0})
	if err != nil {
		return err
	}
	var exists *store.VersionError
	if _, err := s.Set(ctx, "line", zero, 0); err != nil && !errors.As(err, &exists) {
		return err // the other client may have created it
	}
	line := []keyed.Copy{{Key: "line"}}
	for step := range 500 {
		if _, err := s.Pull(ctx, line); err != nil {
			return err
		}
		w, err := store.Floats[float32](line[0].Value)
		if err != nil {
			return err
		}
		x := float32((step*7+client)%11)/5 - 1
		wrong := w[0]*x + w[1] - (2*x + 1)
		gradient, err := store.Tensor([]float32{wrong * x, wrong})
		if err != nil {
			return err
		}
		if err := s.Push(ctx, keyed.Gradient{Key: "line", Value: gradient}); err != nil {
			return err
		}
	}
	return nil
}
