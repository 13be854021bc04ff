package data_test

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/data"
)

// picture encodes an image.
func picture(t testing.TB, m image.Image) string {
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, m))
	return b.String()
}

// painted returns a picture of 4x5 with pixels of one colour.
func painted(t testing.TB, c color.Color) string {
	m := image.NewNRGBA(image.Rect(0, 0, 5, 4))
	for i := range 20 {
		m.Set(i%5, i/5, c)
	}
	return picture(t, m)
}

// Grey, colour and transparency become brightness, and images follow each other.
func TestPNG(t *testing.T) {
	grey := image.NewGray(image.Rect(0, 0, 5, 4))
	grey.Pix[7] = 200
	deep := image.NewGray16(image.Rect(0, 0, 5, 4))
	deep.SetGray16(2, 1, color.Gray16{Y: 200<<8 | 77})
	whole := picture(t, grey) + picture(t, deep) + painted(t, color.NRGBA{R: 255, A: 255}) + painted(t, color.NRGBA{R: 255, G: 255, B: 255, A: 128}) + painted(t, color.White) + painted(t, color.NRGBA{G: 15, B: 10, A: 255})
	d, err := data.NewPNGDecoder(strings.NewReader(whole))
	require.NoError(t, err)
	got, err := images(d)
	require.Equal(t, io.EOF, err)
	require.Len(t, got, 6)
	for k, want := range []float32{200. / 255, 200. / 255, 76. / 255, 128. / 255, 1, 10. / 255} {
		require.Equal(t, want, got[k][7], "image %d", k)
	}
	require.Zero(t, got[0][6])
	require.Zero(t, got[1][8])
}

// Pillow agrees on the brightness of colours.
func TestPNGOfPillow(t *testing.T) {
	var both [2][]float32
	for i, name := range []string{"colours.png", "grey.png"} {
		f, err := os.Open(filepath.Join(fixtures, name))
		require.NoError(t, err)
		defer f.Close()
		d, err := data.NewPNGDecoder(f)
		require.NoError(t, err)
		got, err := images(d)
		require.Equal(t, io.EOF, err)
		require.Len(t, got, 1)
		both[i] = got[0]
	}
	require.InDeltaSlice(t, both[1], both[0], .01/255)
}

// What is not a PNG, or has another size, is an error before pixels take memory.
func TestPNGMistakes(t *testing.T) {
	whole := painted(t, color.White)
	huge := []byte(whole)
	copy(huge[16:], "\x00\xff\xff\xff\x00\xff\xff\xff")
	for want, file := range map[string]string{
		"it is empty":                  "",
		"not a PNG image":              "GIF89a, which is another format",
		"unexpected EOF":               whole[:len(whole)-20],
		"a damaged PNG image: zlib":    strings.Replace(whole, "IDAT", "IDAT\x01", 1),
		"it has images of 5x4, but th": picture(t, image.NewGray(image.Rect(0, 0, 4, 5))),
		"images of 16777215x16777215,": string(huge),
		"is too large":                 strings.Replace(string(huge), "\x00\xff\xff\xff", "\x7f\xff\xff\xff", 1),
	} {
		d, err := data.NewPNGDecoder(strings.NewReader(file))
		if err == nil {
			err = d.Next(make([]float32, 20), 4, 5)
		}
		require.ErrorContains(t, err, want)
	}
	d, err := data.NewPNGDecoder(strings.NewReader(whole + "garbage"))
	require.NoError(t, err)
	got, err := images(d)
	require.ErrorContains(t, err, "not a PNG image")
	require.Len(t, got, 1, "the image before the garbage")
}

// No bytes make a decoder panic.
func FuzzPNG(f *testing.F) {
	f.Add([]byte(painted(f, color.White) + painted(f, color.Black)))
	f.Fuzz(func(t *testing.T, content []byte) { readFuzzed(t, content, data.NewPNGDecoder) })
}

// An IDX tensor is read like one in memory, from a stream of unknown length, too.
func TestIDXDecoder(t *testing.T) {
	x := &data.IDX{Dims: []int{3, 4, 5}, Data: make([]byte, 60)}
	for i := range x.Data {
		x.Data[i] = byte(i * 37)
	}
	var b bytes.Buffer
	require.NoError(t, x.Encode(&b))
	read := func(content string) ([][]float32, error) {
		d, err := data.NewIDXDecoder(strings.NewReader(content))
		if err != nil {
			return nil, err
		}
		return images(d)
	}
	got, err := read(b.String())
	require.Equal(t, io.EOF, err)
	require.Len(t, got, 3)
	require.Equal(t, fixture(2, 19), got[2][19])
	got, err = read(b.String()[:16+59])
	require.ErrorContains(t, err, "truncated: the header promises 3 images, but there are 2")
	require.Len(t, got, 2)
	_, err = read(b.String() + "x")
	require.ErrorContains(t, err, "more data after the 3 rows")
	_, err = read("\x00\x00\x08\x01\x00\x00\x00\x01a")
	require.ErrorContains(t, err, "images must have 3 dimensions")
}

// FuzzIDXDecoder checks that no bytes make a decoder panic.
func FuzzIDXDecoder(f *testing.F) {
	f.Add([]byte("\x00\x00\x08\x03\x00\x00\x00\x01\x00\x00\x00\x04\x00\x00\x00\x05aaaaaaaaaaaaaaaaaaaa"))
	f.Fuzz(func(t *testing.T, content []byte) { readFuzzed(t, content, data.NewIDXDecoder) })
}
