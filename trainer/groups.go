package trainer

import (
	"context"

	"github.com/ringtrain/ringtrain/collective"
)

// Groups provides the group of each View in turn. A *cluster.Node is one; Only
// wraps a single group.
type Groups interface {
	// Group waits for the first View and returns its group; later it returns the
	// newest group, broken or not.
	Group(ctx context.Context) (*collective.Group, error)
	// Regroup waits for the View after that of a broken group and returns the group
	// of it. All members that are left call it. Train does not: it returns when its
	// group breaks.
	Regroup(ctx context.Context, broken *collective.Group) (*collective.Group, error)
}

// Only returns Groups of one group. There is none after it: Regroup returns the
// error that broke it.
func Only(g *collective.Group) Groups { return only{g} }

type only struct{ group *collective.Group }

func (o only) Group(context.Context) (*collective.Group, error) { return o.group, nil }

func (o only) Regroup(_ context.Context, broken *collective.Group) (*collective.Group, error) {
	if err := broken.Err(); err != nil {
		return nil, err
	}
	return nil, collective.ErrClosed
}
