//go:build linux && (amd64 || arm64) && !static

// Command image makes cuda/kernels/kernels.ptx.gz, the kernels as PTX, with the NVRTC that
// RINGTRAIN_NVRTC_LIB names. With -check it only checks that the file exists and was made from
// the present source, and exits with 1 if not.
// scripts/kernels-image.sh runs it.
package main

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"os"

	"github.com/ringtrain/ringtrain/cuda/emulator"
	"github.com/ringtrain/ringtrain/cuda/kernels"
)

func main() {
	check := flag.Bool("check", false, "only check that the file was made from the present source")
	out := flag.String("o", "cuda/kernels/kernels.ptx.gz", "the file to write")
	flag.Parse()
	var err error
	if *check {
		err = current()
	} else {
		err = write(*out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// current returns nil if the embedded image was made from the embedded source.
func current() error {
	image, err := kernels.Image()
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(image, []byte(kernels.ImageMark(kernels.Source()))) {
		return fmt.Errorf("kernels.ptx.gz was made from another source: run go generate ./cuda/kernels")
	}
	return nil
}

// write compiles the source. The same NVRTC always makes the same file.
func write(path string) error {
	nvrtc := os.Getenv("RINGTRAIN_NVRTC_LIB")
	lib, err := emulator.Open([]string{"RINGTRAIN_NVRTC_LIB=" + nvrtc}, "RINGTRAIN_NVRTC_LIB")
	if err != nil {
		return fmt.Errorf("%w; set RINGTRAIN_NVRTC_LIB to NVRTC's file", err)
	}
	ptx, _, err := lib.Compile(kernels.Source(), "--std=c++17", "--gpu-architecture="+kernels.ImageArch)
	if err != nil {
		return err
	}
	var file bytes.Buffer
	z, err := gzip.NewWriterLevel(&file, gzip.BestCompression)
	if err != nil {
		return err
	}
	for _, part := range [][]byte{[]byte(kernels.ImageMark(kernels.Source())), bytes.TrimRight(ptx, "\x00")} {
		if _, err := z.Write(part); err != nil {
			return err
		}
	}
	if err := z.Close(); err != nil {
		return err
	}
	fmt.Printf("image: %d bytes of PTX, %d packed\n", len(ptx), file.Len())
	return os.WriteFile(path, file.Bytes(), 0o644)
}
