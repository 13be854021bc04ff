package gpu

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/cuda/kernels"
)

// open loads all kernels, compiled by NVRTC for this device or taken from the cache. If
// NVRTC is missing or broken, or if the driver rejects its output, the driver compiles
// the program's own PTX image.
func (b *Backend) open() (cuda.Module, error) {
	cache := cuda.UserCache()
	if b.options.Cache != "" {
		cache = cuda.NewCache(b.options.Cache)
	}
	image, missing := b.device.Compile(cache, cuda.Source{Name: "kernels.cu", Text: kernels.Source()})
	if missing == nil {
		module, err := b.device.Load(image)
		if err == nil {
			return module, nil
		}
		missing = fmt.Errorf("the driver rejects what NVRTC compiled: %w", err)
		if newer := cuda.CompilerMismatch(); newer != nil {
			missing = fmt.Errorf("%w: %w", missing, newer)
		}
	} else if !errors.Is(missing, cuda.ErrUnavailable) {
		return cuda.Module{}, missing
	}
	image, err := kernels.Image()
	if err != nil {
		return cuda.Module{}, errors.Join(missing, err)
	}
	module, err := b.device.Load(image)
	if err != nil {
		return cuda.Module{}, fmt.Errorf("%w; the driver also rejects the program's own PTX: %w", missing, err)
	}
	if b.options.Notice != nil {
		why := strings.TrimPrefix(missing.Error(), cuda.ErrUnavailable.Error()+": ")
		b.options.Notice("using the program's own PTX kernels, compiled by the driver: " + why)
	}
	return module, nil
}
