package bench

import (
	"errors"
	"io"
	"os"
)

// WriteTo makes a file, unless its name is empty.
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
