package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/ringtrain/ringtrain/trainer/store"
)

// One process serves a directory. Others store parameters there, and do not overwrite
// each other's.
func Example() {
	dir, err := os.MkdirTemp("", "store")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	if err := serveAndSet(dir); err != nil {
		fmt.Println(err)
	}
	// Output:
	// [head tail]
	// float64 [4], version 1
	// "tail" is at version 1, not 7: somebody else has updated it; get it again
}

func serveAndSet(dir string) (err error) {
	ctx := context.Background()
	db, err := store.Open(dir, store.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	server, err := store.Serve(db, store.ServerConfig{Addr: "127.0.0.1:0"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()

	client, err := store.NewClient(store.ClientConfig{Addr: server.Addr().String()})
	if err != nil {
		return err
	}
	defer client.Close()
	for _, key := range []string{"head", "tail"} {
		v, err := store.Tensor([]float64{1, 2})
		if err != nil {
			return err
		}
		if _, err := client.Set(ctx, key, v, 0); err != nil {
			return err
		}
	}
	keys, err := client.Keys(ctx, "")
	if err != nil {
		return err
	}
	fmt.Println(keys)
	var parts []store.Value
	for _, key := range keys {
		v, _, err := client.Get(ctx, key)
		if err != nil {
			return err
		}
		parts = append(parts, v)
	}
	whole, err := store.Join(parts...)
	if err != nil {
		return err
	}
	version, err := client.Set(ctx, "whole", whole, store.Any)
	if err != nil {
		return err
	}
	fmt.Printf("%v, version %d\n", whole, version)
	var conflict *store.VersionError
	if _, err := client.Set(ctx, "tail", parts[0], 7); errors.As(err, &conflict) {
		fmt.Println(conflict)
	}
	return nil
}
