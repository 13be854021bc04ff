package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/ringtrain/ringtrain/cuda"
)

// products times one product of square matrices with cuBLASLt, in microseconds for each kind
// of numbers. It is the upper limit for a network of such products.
func products(ctx context.Context, width int) (us map[string]float64, err error) {
	d, err := cuda.Open(0)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	us = map[string]float64{}
	err = d.Do(ctx, func() error {
		s, err := d.NewStream()
		if err != nil {
			return err
		}
		var at [3]cuda.Ptr
		for i := range at {
			if at[i], err = d.Alloc(4 * width * width); err != nil {
				return err
			}
			// About 2⁻¹⁰ in both types. Products of zeros would be faster than those of real data.
			if err := s.Fill(at[i], 0x3a803a80, width*width); err != nil {
				return err
			}
		}
		for _, k := range kinds {
			p := cuda.Product{M: width, N: width, K: width, TransB: true, A: at[0], B: at[1], C: at[2]}
			if k.options.BF16 {
				p.Type = cuda.BFloat16s // also of the result, which is fastest
			}
			if us[k.name], err = product(d, s, k.options.TF32, p); err != nil {
				return fmt.Errorf("product in %s: %w", k.name, err)
			}
		}
		return s.Destroy()
	})
	return us, err
}

func product(d *cuda.Device, s cuda.Stream, tf32 bool, p cuda.Product) (us float64, err error) {
	blas, err := d.NewBLAS(cuda.BLASOptions{TF32: tf32})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, blas.Destroy()) }()
	plan, err := blas.Plan(s, p)
	if err != nil {
		return 0, err
	}
	defer plan.Destroy()
	took, err := d.Time(s, func() error { return plan.Run(s) })
	return float64(took.Nanoseconds()) / 1e3, err
}
