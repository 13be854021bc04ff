package trainertest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ringtrain/ringtrain/trainer"
)

// checkStart starts a new training. Place must agree with the group and, with Equal, all
// ranks must hold the values of rank 0.
func checkStart(h *harness, size int) error {
	var first []float32
	values := make([][]float32, size)
	places := make([]trainer.Place, size)
	err := h.ranks(size, func(ctx context.Context, r *rank) (err error) {
		i := r.group.Rank()
		if i == 0 {
			first = r.values()
		}
		r.doing.Store("Start")
		places[i], err = r.strategy.Start(ctx, trainer.Start{Group: r.group, Params: r.params})
		values[i] = r.values()
		return err
	})
	if err != nil {
		return err
	}
	for i, p := range places {
		if p.Rank() != i || p.Size() != size || p.Step != 0 {
			return fmt.Errorf("rank %d of %d: Place says rank %d of %d after step %d", i, size, p.Rank(), p.Size(), p.Step)
		}
	}
	if !h.Equal {
		return nil
	}
	if err := allEqual(values); err != nil {
		return err
	}
	if err := sameBits(first, values[0]); err != nil {
		return fmt.Errorf("Start changes the values of rank 0: %w", err)
	}
	return nil
}

// checkSettings changes a setting on the last rank. Every rank gets an error that names
// the setting and the rank, and no value changes.
func checkSettings(h *harness, size int) error {
	if !h.Compares || size == 1 {
		return nil
	}
	return h.ranks(size, func(ctx context.Context, r *rank) error {
		odd, before := size-1, r.values()
		setting := trainer.Setting{Name: "the seed", Value: "1"}
		if r.group.Rank() == odd {
			setting.Value = "2"
		}
		r.doing.Store("Start")
		_, err := r.strategy.Start(ctx, trainer.Start{Group: r.group, Params: r.params, Settings: []trainer.Setting{setting}})
		var differ *trainer.SettingsError
		if !errors.As(err, &differ) {
			return fmt.Errorf("rank %d has a different setting, but Start returns %v", odd, err)
		}
		if !slices.Equal(differ.Settings, []string{"the seed"}) || !slices.Equal(differ.Ranks, []int{odd}) {
			return fmt.Errorf("the seed of rank %d differs, but Start says: %w", odd, err)
		}
		return r.unchanged(before)
	})
}
