package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// A networkPlan says how ranks in network namespaces of this machine are connected.
type networkPlan struct {
	limits launch.NetworkOptions
	key    string // file of the key that encrypts traffic; "" for none
	fresh  bool   // encrypt with a key that is made for this run
}

// planNetwork returns the plan for the values of --key-file, --insecure and --link. Traffic
// is encrypted with the key of keyFile, or that of the environment unless insecure, or else
// a fresh one.
func planNetwork(keyFile string, insecure bool, link string) (p networkPlan, err error) {
	if keyFile != "" || !insecure {
		if p.key, err = crew.FindKey(keyFile); err != nil {
			return p, err
		}
		p.fresh = p.key == ""
	}
	if link == "" {
		return p, nil
	}
	if p.limits.Link, err = launch.ParseRate(link); err != nil {
		return p, fmt.Errorf("--link: %w", err)
	}
	return p, nil
}

// open creates the network, and the key if it is fresh. done removes both.
func (p networkPlan) open(ctx context.Context, nodes int) (network *launch.Network, key string, done func() error, err error) {
	network, err = launch.Namespaces(ctx, nodes, p.limits)
	switch {
	case errors.Is(err, launch.ErrNoNamespaces):
		return nil, "", nil, crew.Usagef("--hosts netns: %w", err)
	case err != nil:
		return nil, "", nil, err
	case !p.fresh:
		return network, p.key, network.Close, nil
	}
	key, remove, err := temporaryKey()
	if err != nil {
		return nil, "", nil, errors.Join(err, network.Close())
	}
	return network, key, func() error { return errors.Join(network.Close(), remove()) }, nil
}

// where describes for the report of a ScalingRun where its workers run.
func (f *ScalingRun) where(secured bool) string {
	tls := tlsText(secured)
	switch {
	case f.Hosts == Namespaces:
		return "each worker in a network namespace of one machine, " + cmp.Or(f.Link, "no limit") + " each way, " + tls
	case f.transport() == cluster.TransportTCP:
		return "workers on one machine, over loopback, " + tls
	}
	return "workers on one machine, " + tls
}

func tlsText(secured bool) string {
	if secured {
		return "TLS 1.3"
	}
	return "no TLS"
}
