package userfiles

import (
	"io"
	"io/fs"
	"os"
)

// Read reads a regular file of at most most bytes that Own accepts. It checks the file that it
// has opened, so the file cannot be replaced in between. On Unix it does not follow links. The
// error is fs.ErrPermission if a check fails.
func Read(path string, most int64, denied fs.FileMode) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|noFollow, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || !Own(info, denied) {
		return nil, fs.ErrPermission
	}
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = fs.ErrPermission
	}
	return text, err
}
