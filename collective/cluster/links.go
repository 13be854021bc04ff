package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/calibration"
	"github.com/ringtrain/ringtrain/collective/schedule"
	"github.com/ringtrain/ringtrain/collective/tcp"
)

// knownLinks has what links cost, by hostsKey.
type knownLinks map[string]schedule.Links

// measureLinks makes the engine's plans use what the links cost. This is measured once for
// each list of hosts, and kept for other jobs of the same hosts.
func (n *Node) measureLinks(ctx context.Context, v collective.View, transport string, e *collective.HostEngine) error {
	policy, err := n.calibration()
	if err != nil {
		return err
	}
	key := hostsKey(v, transport, n.config.Streams, n.config.Key != nil)
	p := collective.LinkPolicy{Measure: policy.Mode != calibration.Off}
	if policy.Mode == calibration.Auto {
		if known, ok := n.links[key]; ok {
			p.Known = &known
		} else if known, ok := policy.Store.LoadLinks(key); ok {
			p.Known = &known
		}
	}
	links, measured, err := e.MeasureLinks(ctx, p)
	var broken *collective.RankError
	switch {
	case errors.As(err, &broken) && broken.Phase == "connect": // another rank is not connected
		return err
	case err != nil:
		return fmt.Errorf("cluster: measuring the links between %d workers: %w", v.Size(), err)
	case links == nil:
		return nil
	case n.links == nil:
		n.links = knownLinks{}
	}
	n.links[key] = *links
	if first := slices.IndexFunc(v.Members, func(m collective.Member) bool { return m.Host == n.member.Host }); !measured || !links.Lasting() || first != v.Self {
		return nil
	}
	if err := policy.Store.SaveLinks(key, *links); err != nil {
		n.config.Log.Debug("the costs of links cannot be cached, so the next job measures again", "reason", err)
	}
	return nil
}

// hostsKey describes the hosts of a View by rank, and how their ranks exchange messages.
// It says nothing that changes from job to job: members have the same addresses, and the
// host of the same first member.
func hostsKey(v collective.View, transport string, streams int, encrypted bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, streams %d, encrypted %v:", transport, cmp.Or(streams, tcp.AutoStreams), encrypted)
	for r, m := range v.Members {
		fmt.Fprintf(&b, " %d", slices.IndexFunc(v.Members[:r+1], func(o collective.Member) bool { return o.Host == m.Host }))
		for _, a := range m.Addrs {
			fmt.Fprint(&b, " ", a.Addr())
		}
	}
	return b.String()
}
