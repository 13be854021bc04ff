package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/ringtrain/ringtrain/trainer/store"
)

// train updates the parameters that a trainer has in the store, or zeros at first. It does
// not know whether the store is in this process.
func train(ctx context.Context, s store.Store, name string, o options) error {
	parameters := make([]float64, o.parameters)
	v, version, err := s.Get(ctx, name)
	switch {
	case errors.Is(err, store.ErrNotFound):
	case err != nil:
		return err
	default:
		if parameters, err = store.Floats[float64](v); err != nil {
			return fmt.Errorf("%q: %w", name, err)
		}
	}
	seed := fnv.New64a()
	_, _ = seed.Write([]byte(name)) // never fails
	random := rand.New(rand.NewPCG(seed.Sum64(), version))
	for range o.iterations {
		for i := range parameters {
			parameters[i] += float64(.2*random.Float64()) - .1
		}
		select {
		case <-time.After(o.pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if v, err = store.Tensor(parameters, o.parameters); err != nil {
		return fmt.Errorf("%q has %d parameters: %w", name, len(parameters), err)
	}
	_, err = s.Set(ctx, name, v, version)
	return err
}

// join stores the parameters of all trainers as one tensor.
func join(ctx context.Context, s store.Store, names []string) (whole store.Value, err error) {
	var parts []store.Value
	for _, name := range names {
		v, _, err := s.Get(ctx, name)
		if err != nil {
			return whole, err
		}
		parts = append(parts, v)
	}
	if whole, err = store.Join(parts...); err != nil {
		return whole, err
	}
	_, err = s.Set(ctx, "model", whole, store.Any)
	return whole, err
}
