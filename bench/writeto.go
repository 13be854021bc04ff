package bench

import (
	"errors"
	"io"
	"os"
)

// WriteTo creates a file and writes it, unless path is "".
func WriteTo(path string, write func(io.Writer) error) error {
	if path == "" {
		return nil
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}
