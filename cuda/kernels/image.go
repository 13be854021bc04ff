package kernels

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed" // the image
	"fmt"
	"io"
)

//go:generate ../../scripts/kernels-image.sh

//go:embed kernels.ptx.gz
var packed []byte

// ImageArch is the oldest architecture that runs Image: Volta.
const ImageArch = "compute_70"

// Image returns Source as PTX, for machines without NVRTC. Drivers of CUDA 11.8 or later
// compile it for their devices.
func Image() ([]byte, error) { return unpack(packed) }

// ImageMark returns the first line of an image, which identifies its source.
func ImageMark(source string) string {
	return fmt.Sprintf("// ringtrain kernels, of a source with SHA-256 %x\n", sha256.Sum256([]byte(source)))
}

func unpack(image []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(image))
	if err != nil {
		return nil, fmt.Errorf("kernels: kernels.ptx.gz: %w; go generate makes it", err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("kernels: kernels.ptx.gz: %w; go generate makes it", err)
	}
	return text, nil
}
