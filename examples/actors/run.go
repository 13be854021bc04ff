package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/ringtrain/ringtrain/trainer/launch"
	"github.com/ringtrain/ringtrain/trainer/store"
)

// run is the program: the process of a trainer, or the one that starts them.
func run(ctx context.Context, o options) (err error) {
	if o.trainer != "" {
		return runTrainer(ctx, o)
	}
	db, err := store.Open(o.dir, store.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	begin := time.Now()
	if o.local {
		for i := range o.trainers {
			if err := train(ctx, db, trainerName(i), o); err != nil {
				return err
			}
		}
	} else if err := trainRemotely(ctx, db, o); err != nil {
		return err
	}
	fmt.Printf("%d trainers: %.2f s\n", o.trainers, time.Since(begin).Seconds())

	names, err := db.Keys(ctx, "trainer")
	if err != nil {
		return err
	}
	for _, name := range names {
		v, version, err := db.Get(ctx, name)
		if err != nil {
			return err
		}
		fmt.Printf("%s: %v, version %d\n", name, v, version)
	}
	whole, err := join(ctx, db, names)
	if err == nil {
		fmt.Printf("model: %v\n", whole)
	}
	return err
}

func trainerName(i int) string { return fmt.Sprintf("trainer%d", i) }

// trainRemotely serves the store to a process per trainer, and waits for them.
func trainRemotely(ctx context.Context, db *store.DB, o options) (err error) {
	server, err := store.Serve(db, store.ServerConfig{Addr: "127.0.0.1:0"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	program, err := os.Executable()
	if err != nil {
		return err
	}
	job := launch.Start(ctx, launch.Options{})
	for i := range o.trainers {
		name := trainerName(i)
		_, err := job.Run(launch.Command{Name: name, Path: program, Args: []string{
			"--trainer", name, "--store", server.Addr().String(),
			fmt.Sprintf("--parameters=%d", o.parameters), fmt.Sprintf("--iterations=%d", o.iterations), fmt.Sprintf("--pause=%v", o.pause)},
			Stderr: func(line []byte) { fmt.Fprintf(os.Stderr, "%s: %s\n", name, line) }})
		if err != nil {
			job.Stop(err)
			break
		}
	}
	outcome := job.Wait()
	if outcome.Root != nil {
		return &launch.ExitError{Exit: *outcome.Root}
	}
	return outcome.Cause
}

// runTrainer is the process of a trainer. It ends with the process that started it.
func runTrainer(ctx context.Context, o options) error {
	ctx, stop, err := launch.Lifeline(ctx)
	if err != nil {
		return err
	}
	defer stop()
	client, err := store.NewClient(store.ClientConfig{Addr: o.store})
	if err != nil {
		return err
	}
	return errors.Join(train(ctx, client, o.trainer, o), client.Close())
}
