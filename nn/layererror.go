package nn

import "fmt"

// A LayerError is a layer that does not fit into its model. Init returns it.
type LayerError struct {
	Path string // scope of the layer, such as "layers.0"; see [Builder.Path]
	Msg  string // what is wrong, with the names of the layer's fields, and what to do
}

// Error returns both on one line.
func (e *LayerError) Error() string { return "nn: " + e.Path + ": " + e.Msg }

// errorf returns a *LayerError about the layer of this scope.
func (b *Builder) errorf(format string, args ...any) error {
	return &LayerError{Path: b.Path(), Msg: fmt.Sprintf(format, args...)}
}
