package cluster_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/membership"
)

// The test binary also serves as the processes of its jobs: with this variable set
// it is a worker, whose rank its other variables give. A "stubborn" one calls Regroup
// again in the minority. One that "watches" reports the processes that it sees.
const envWorker = "CLUSTER_TEST_WORKER"

// worker reduces until it is asked to stop and regroups when something breaks. It prints a
// line for each event and obeys commands: on "cancel" it cancels a call, on "mute" it
// says so and from then on hangs instead of calling Regroup, on "quit" it ends.
func worker() int {
	c, _, err := cluster.FromEnv()
	if err != nil {
		fmt.Println("end", err)
		return 1
	}
	if os.Getenv(envWorker) == "watches" {
		return watcher(c)
	}
	c.ConnectTime = 3 * time.Second
	ctx, quit := context.WithTimeout(context.Background(), 2*time.Minute)
	defer quit()
	node, err := cluster.Join(ctx, c)
	if err != nil {
		fmt.Println("end", err)
		return 1
	}
	defer node.Close()
	fmt.Println("addr", node.Addr())
	w := &laborer{node: node}
	go w.obey(quit)
	if err := w.work(ctx); ctx.Err() == nil {
		fmt.Println("end", kindOf(err), err)
		return 1
	}
	fmt.Println("end quit", w.steps)
	return 0
}

// watcher prints how many processes it sees and their View, until its input ends.
func watcher(c cluster.Config) int {
	ctx, quit := context.WithTimeout(context.Background(), 2*time.Minute)
	defer quit()
	w, err := cluster.Watch(ctx, c)
	if err != nil {
		fmt.Println("end", err)
		return 1
	}
	defer w.Close()
	go new(laborer).obey(quit)
	said := ""
	for tick := time.NewTicker(20 * time.Millisecond); ctx.Err() == nil; {
		now := fmt.Sprint("sees ", len(w.Members()))
		if v, err := w.View(ctx); err == nil {
			now += fmt.Sprintf(" epoch %d", v.Epoch)
		}
		if now != said {
			fmt.Println(now)
			said = now
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	fmt.Println("end quit")
	return 0
}

type laborer struct {
	node   *cluster.Node
	steps  int
	cancel atomic.Bool
	mute   atomic.Bool
}

func (w *laborer) obey(quit func()) {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		switch in.Text() {
		case "cancel":
			w.cancel.Store(true)
		case "mute":
			w.mute.Store(true)
			fmt.Println("mute")
		}
		if in.Text() == "quit" {
			break
		}
	}
	quit()
}

func (w *laborer) work(ctx context.Context) error {
	g, err := w.node.Group(ctx)
	for err == nil {
		err = w.reduce(ctx, g)
		if ctx.Err() != nil {
			return err
		}
		fmt.Println("broken", err)
		if w.mute.Load() {
			<-ctx.Done()
			return ctx.Err()
		}
		begin := time.Now()
		g, err = w.node.Regroup(ctx, g)
		for errors.Is(err, membership.ErrMinority) && os.Getenv(envWorker) == "stubborn" {
			fmt.Println("minority", err)
			g, err = w.node.Regroup(ctx, nil)
		}
		if err == nil {
			fmt.Println("regrouped", time.Since(begin).Milliseconds())
		}
	}
	return err
}

// reduce checks sums until one fails. It prints a line after the first correct one.
func (w *laborer) reduce(ctx context.Context, g *collective.Group) error {
	s := make([]int64, 1<<16)
	for first := true; ; first = false {
		for i := range s {
			s[i] = int64(g.Rank() + 1 + i)
		}
		call, end := context.WithCancel(ctx)
		if w.cancel.Swap(false) {
			end()
		}
		err := collective.AllReduce(call, g, s, collective.Sum)
		end()
		if err != nil {
			return err
		}
		n := int64(g.Size())
		for i := range s {
			if s[i] != n*(n+1)/2+n*int64(i) {
				fmt.Println("end wrong sum", i, s[i])
				os.Exit(1)
			}
		}
		w.steps++
		if first {
			var names []string
			for _, m := range g.View().Members {
				names = append(names, m.Name)
			}
			fmt.Println("group", g.View().Epoch, g.Size(), strings.Join(names, ","))
		}
	}
}

func kindOf(err error) string {
	switch {
	case errors.Is(err, membership.ErrMinority):
		return "minority"
	case errors.Is(err, membership.ErrExpelled):
		return "expelled"
	}
	return "other"
}
