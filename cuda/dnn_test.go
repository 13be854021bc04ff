package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDNNVersionText(t *testing.T) {
	for v, want := range map[int]string{8500: "8.5.0", 8907: "8.9.7", 90100: "9.1.0", 92801: "9.28.1"} {
		require.Equal(t, want, dnnVersionText(v))
	}
}

func TestUnfitDNN(t *testing.T) {
	require.Empty(t, unfitDNN(90100, 12040, 13000))
	require.Empty(t, unfitDNN(90100, 12080, 12020), "a major version's libraries work with all of its drivers")
	require.Empty(t, unfitDNN(92801, 13050, 0), "the driver is not known")
	require.Equal(t, "for CUDA 13, and the driver supports CUDA 12.4: update the driver, or pip install nvidia-cudnn-cu12", unfitDNN(92801, 13050, 12040))
	require.Contains(t, unfitDNN(8401, 11060, 13000), "and 8.5.0 or newer is needed")
	require.Contains(t, unfitDNN(100000, 13050, 13000), "which ringtrain does not know")
}

func TestConvolutionKind(t *testing.T) {
	c := Convolution{Pass: ConvWeights, Rows: 8, Channels: 3, Height: 32, Width: 30, Filters: 16, Size: 3, Stride: 2, Padding: 1}
	require.Equal(t, "conv2d weights 8x3x32x30 by 16x3x3 stride 2 padding 1 f32", c.Kind(false))
	require.Equal(t, "conv2d weights 8x3x32x30 by 16x3x3 stride 2 padding 1 tf32", c.Kind(true))
	require.Equal(t, 8*16*16*15*27, c.MultiplyAdds())
}
