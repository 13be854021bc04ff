package gpu

import (
	"errors"
	"fmt"

	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/cuda/kernels"
)

// open loads all kernels: compiled by NVRTC for the device, or taken from the
// cache, and where there is no NVRTC compiled by the driver, of the image that
// the program has.
func (b *Backend) open() (cuda.Module, error) {
	cache := cuda.UserCache()
	if b.options.Cache != "" {
		cache = cuda.NewCache(b.options.Cache)
	}
	image, missing := b.device.Compile(cache, cuda.Source{Name: "kernels.cu", Text: kernels.Source()})
	if missing == nil {
		return b.device.Load(image)
	}
	if !errors.Is(missing, cuda.ErrUnavailable) {
		return cuda.Module{}, missing
	}
	image, err := kernels.Image()
	if err != nil {
		return cuda.Module{}, errors.Join(missing, err)
	}
	module, err := b.device.Load(image)
	if err != nil {
		return cuda.Module{}, fmt.Errorf("%w; without it kernels are the program's own PTX, which the driver refuses: %w", missing, err)
	}
	return module, nil
}
