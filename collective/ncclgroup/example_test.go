package ncclgroup_test

import (
	"context"
	"fmt"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/ncclgroup"
	"github.com/ringtrain/ringtrain/cuda"
)

// Each worker uses the GPU with its own number, and sums a vector in GPU memory over
// all workers. It needs a GPU and a program built with -tags gpu.
func Example() {
	err := sum(context.Background())
	fmt.Println(err)
}

func sum(ctx context.Context) error {
	config, _, err := cluster.FromEnv()
	if err != nil {
		return err
	}
	device, err := cuda.Open(config.Local)
	if err != nil {
		return err
	}
	defer device.Close()
	var stream cuda.Stream
	var memory cuda.Ptr
	err = device.Do(ctx, func() error {
		if stream, err = device.NewStream(); err != nil {
			return err
		}
		memory, err = device.Alloc(4 << 20)
		return err
	})
	if err != nil {
		return err
	}

	config.Group.Order = collective.AnyOrder // otherwise NCCL does not reduce
	config.Engine = func(ctx context.Context, v collective.View, base *collective.HostEngine) (collective.Engine, error) {
		return ncclgroup.New(ctx, v, base, ncclgroup.Config{Device: device, Stream: stream})
	}
	node, err := cluster.Join(ctx, config)
	if err != nil {
		return err
	}
	defer node.Close()
	group, err := node.Group(ctx)
	if err != nil {
		return err
	}
	return group.AllReduce(ctx, collective.OnDevice(device.Info().Index, uintptr(memory), 1<<20, collective.Float32), collective.Sum)
}
