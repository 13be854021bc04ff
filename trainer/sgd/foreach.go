package sgd

import (
	"context"
	"sync"
)

// ForEachModel runs fn for all replicas of this process at the same time, and returns the
// results in the order of workers and their devices. If fn fails, the error is a
// *ReplicaError; it does not break s. fn runs on the thread that the backend needs.
// Replicas must have the same weights before the next step.
func ForEachModel[T any](ctx context.Context, s *SGD, fn func(*Replica) (T, error)) ([]T, error) {
	if s.broken != nil {
		return nil, s.broken
	}
	results := make([]T, len(s.replicas))
	err := s.fork("ForEachModel", func(r *Replica) error {
		return r.Backend.Do(ctx, func() (err error) {
			results[r.rank-s.replicas[0].rank], err = fn(r)
			return err
		})
	})
	return results, err
}

// ForEachWorker runs fn for all workers of this process at the same time, with their
// replicas by device, and returns the results by worker. With Join that is the one replica
// of this process. If fn fails, the error is a *ReplicaError of the worker's first replica;
// it does not break s. fn uses a replica inside its Backend.Do.
func ForEachWorker[T any](ctx context.Context, s *SGD, fn func(worker int, replicas []*Replica) (T, error)) ([]T, error) {
	if s.broken != nil {
		return nil, s.broken
	}
	each := min(s.options.Devices, len(s.replicas))
	results := make([]T, len(s.replicas)/each)
	errs := make([]error, len(results))
	var all sync.WaitGroup
	for w := range results {
		all.Go(func() {
			of := s.replicas[w*each : (w+1)*each]
			results[w], errs[w] = fn(of[0].worker, of)
		})
	}
	all.Wait()
	for w, err := range errs {
		if err != nil {
			return results, s.named("ForEachWorker", s.replicas[w*each], err)
		}
	}
	return results, nil
}
