// Package errtext takes from errors what the messages around them say themselves.
package errtext

import (
	"errors"
	"io/fs"
	"net"
)

// Reason returns the cause in an error of a file, without the operation and the path, or
// of a connection, without the operation and the addresses. Other errors are unchanged.
func Reason(err error) error {
	var file *fs.PathError
	var conn *net.OpError
	switch {
	case errors.As(err, &file) && file.Err != nil:
		return file.Err
	case errors.As(err, &conn) && conn.Err != nil:
		return conn.Err
	}
	return err
}
