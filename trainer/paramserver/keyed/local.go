package keyed

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer/store"
)

// A Local is a Store in this process.
type Local struct {
	backend   nn.Backend
	optimizer optim.Optimizer

	mu    sync.Mutex // held during every use of the backend
	items map[string]*item
}

// An item is what a Local holds under a key.
type item struct {
	version   uint64
	value     store.Value
	parameter *parameter // nil until a gradient is pushed
}

var _ Store = (*Local)(nil)

// NewLocal returns a store without keys, which updates values on b with o. Nobody else uses
// b while the store is in use, and the caller closes it.
func NewLocal(b nn.Backend, o optim.Optimizer) *Local {
	return &Local{backend: b, optimizer: o, items: make(map[string]*item)}
}

// Get implements store.Store.
func (l *Local) Get(ctx context.Context, key string) (v store.Value, version uint64, err error) {
	err = l.read(ctx, key, 0, func(found *item) { v, version = clone(found.value), found.version })
	return v, version, err
}

// Set implements store.Store.
func (l *Local) Set(ctx context.Context, key string, v store.Value, version uint64) (uint64, error) {
	if err := usable(ctx, key); err != nil {
		return 0, err
	}
	if err := v.Check(); err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	i, exists := l.items[key]
	if !exists {
		i = &item{}
	}
	if version != store.Any && version != i.version {
		return 0, &store.VersionError{Key: key, Want: version, Have: i.version}
	}
	if exists {
		if err := v.CheckUpdate(key, i.value); err != nil {
			return 0, err
		}
	}
	if i.parameter != nil {
		if err := i.parameter.set(ctx, l.backend, v.Data); err != nil {
			return 0, err
		}
	}
	i.value = clone(v)
	i.version++
	l.items[key] = i
	return i.version, nil
}

// Keys implements store.Store.
func (l *Local) Keys(ctx context.Context, prefix string) ([]string, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var keys []string
	for key := range l.items {
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys, nil
}

// Push implements Store.
func (l *Local) Push(ctx context.Context, gradients ...Gradient) error {
	for _, g := range gradients {
		if _, err := l.push(ctx, g); err != nil {
			return err
		}
	}
	return nil
}

// push applies a gradient, and returns the new version.
func (l *Local) push(ctx context.Context, g Gradient) (uint64, error) {
	if err := usable(ctx, g.Key); err != nil {
		return 0, err
	}
	if err := g.Value.Check(); err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	i, exists := l.items[g.Key]
	switch {
	case !exists:
		return 0, fmt.Errorf("%w: %q", store.ErrNotFound, g.Key)
	case i.value.Type != store.Float32:
		return 0, fmt.Errorf("%w: %q holds %v, and only float32 tensors can be trained", store.ErrRefused, g.Key, i.value)
	case g.Value.Type != store.Float32 || !slices.Equal(g.Value.Shape, i.value.Shape):
		return 0, fmt.Errorf("%w: the gradient of %q must be %v, not %v", store.ErrRefused, g.Key, i.value, g.Value)
	case !finite(g.Value.Data):
		return 0, fmt.Errorf("%w: the gradient of %q is not finite: lower the learn rate, or look at the data of that step", store.ErrRefused, g.Key)
	}
	if i.parameter == nil {
		p, err := newParameter(ctx, l.backend, l.optimizer, i.value.Data)
		if err != nil {
			return 0, err
		}
		i.parameter = p
	}
	if err := i.parameter.update(ctx, l.backend, l.optimizer, g.Value.Data, i.value.Data); err != nil {
		return 0, err
	}
	i.version++
	return i.version, nil
}

// Pull implements Store.
func (l *Local) Pull(ctx context.Context, copies []Copy) (changed int, err error) {
	for i := range copies {
		c := &copies[i]
		err := l.read(ctx, c.Key, c.Version, func(found *item) {
			c.set(found.value, found.version)
			changed++
		})
		if err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// read calls found with what a key holds, unless its version is known. Found keeps nothing.
func (l *Local) read(ctx context.Context, key string, known uint64, found func(*item)) error {
	if err := usable(ctx, key); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	i, exists := l.items[key]
	if !exists {
		return fmt.Errorf("%w: %q", store.ErrNotFound, key)
	}
	if i.version != known {
		found(i)
	}
	return nil
}

// sizes returns the bytes of each key.
func (l *Local) sizes() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	sizes := make(map[string]int, len(l.items))
	for key, i := range l.items {
		sizes[key] = len(i.value.Data)
	}
	return sizes
}

// usable returns an error if ctx has ended or no store can have the key.
func usable(ctx context.Context, key string) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return store.CheckKey(key)
}
