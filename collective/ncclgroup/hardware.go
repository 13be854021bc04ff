package ncclgroup

import (
	"context"
	"errors"
	"fmt"

	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/nccl"
)

// hardware is the part of CUDA and NCCL that an Engine uses.
type hardware interface {
	index() int // of the device
	// on runs fn on the thread that queues calls, aside on a thread that the replica does
	// not keep busy. They return the error of fn, or of ctx if fn did not start.
	on(ctx context.Context, fn func() error) error
	aside(ctx context.Context, fn func() error) error
	// apart runs fn, which may never return, on a thread of its own.
	apart(fn func() error) error

	version() (nccl.Version, error)
	uniqueID() (nccl.UniqueID, error)
	join(size int, id nccl.UniqueID, rank int) (communicator, error) // aside

	capturing(s cuda.Stream) (bool, error) // on
	mark() error                           // on: at the end of Config.Stream
	passed() (bool, error)                 // on or aside: the last mark

	room(bytes int) ([]byte, error)                    // on: pinned memory, the same each time if large enough
	toHost(offset int, src uintptr, bytes int) error   // on: into room
	toDevice(dst uintptr, offset int, bytes int) error // on: from room
	close() error
}

// A communicator is one rank's NCCL communicator. Only AsyncError may be called on any
// thread. Calls never overlap.
type communicator interface {
	AsyncError() error
	queue(s cuda.Stream, commands []nccl.Command) error // on
	Finalize() error                                    // aside
	Destroy() error                                     // apart, as those below
	Abort() error
}

var (
	_ hardware     = (*gpu)(nil)
	_ communicator = ended{}
)

// gpu is the hardware of a real or an emulated device.
type gpu struct {
	replica, own *cuda.Device
	stream       cuda.Stream
	event        cuda.Event
	memory       *cuda.Pinned
}

// openGPU opens the device a second time, for a thread of its own.
func openGPU(ctx context.Context, c Config) (*gpu, error) {
	if c.Device == nil {
		return nil, errors.New("ncclgroup: Config has no Device")
	}
	own, err := cuda.Open(c.Device.Info().Index)
	if err != nil {
		return nil, err
	}
	g := &gpu{replica: c.Device, own: own, stream: c.Stream}
	err = own.Do(ctx, func() (err error) {
		g.event, err = own.NewEvent(false)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, own.Close())
	}
	return g, nil
}

func (g *gpu) index() int { return g.replica.Info().Index }

func (g *gpu) on(ctx context.Context, fn func() error) error { return g.replica.Do(ctx, fn) }

func (g *gpu) aside(ctx context.Context, fn func() error) error { return g.own.Do(ctx, fn) }

func (g *gpu) apart(fn func() error) error {
	d, err := cuda.Open(g.index())
	if err != nil { // the device has failed, so its other thread is free
		return g.own.Do(context.Background(), fn)
	}
	return errors.Join(d.Do(context.Background(), fn), d.Close())
}

func (g *gpu) version() (nccl.Version, error) { return nccl.GetVersion() }

func (g *gpu) uniqueID() (nccl.UniqueID, error) { return nccl.GetUniqueID() }

func (g *gpu) join(size int, id nccl.UniqueID, rank int) (communicator, error) {
	c, err := nccl.InitRank(size, id, rank)
	if err != nil {
		if !c.None() {
			_ = c.Abort() // the first failure says more
		}
		return nil, err
	}
	return ended{c}, nil
}

func (g *gpu) capturing(s cuda.Stream) (bool, error) { return s.Capturing() }

func (g *gpu) mark() error { return g.event.Record(g.stream) }

func (g *gpu) passed() (bool, error) { return g.event.Done() }

func (g *gpu) room(bytes int) ([]byte, error) {
	if g.memory != nil && len(g.memory.Bytes()) >= bytes {
		return g.memory.Bytes(), nil
	}
	if g.memory != nil {
		if err := g.memory.Free(); err != nil {
			return nil, err
		}
		g.memory = nil
	}
	m, err := g.replica.AllocPinned(bytes, false)
	if err != nil {
		return nil, fmt.Errorf("staging: %w", err)
	}
	g.memory = m
	return m.Bytes(), nil
}

func (g *gpu) toHost(offset int, src uintptr, bytes int) error {
	return g.stream.CopyOut(g.memory, offset, cuda.Ptr(src), bytes)
}

func (g *gpu) toDevice(dst uintptr, offset, bytes int) error {
	return g.stream.CopyIn(cuda.Ptr(dst), g.memory, offset, bytes)
}

// close frees what belongs to the engine. Nothing is in progress.
func (g *gpu) close() error {
	err := g.own.Do(context.Background(), func() error {
		err := g.event.Destroy()
		if g.memory != nil {
			err = errors.Join(err, g.memory.Free())
		}
		return err
	})
	return errors.Join(err, g.own.Close())
}

// ended is a communicator.
type ended struct{ nccl.Comm }

func (e ended) queue(s cuda.Stream, commands []nccl.Command) error { return e.Group(s, commands) }
