package cluster

import (
	"context"
	"fmt"
	"strings"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/calibration"
	"github.com/ringtrain/ringtrain/collective/schedule"
)

// knownLinks has the costs of links by the hosts that they join; see hostsKey.
type knownLinks map[string]schedule.Cost

// measureLinks makes the engine's plans use the cost of the links, which is measured once
// for each list of hosts.
func (n *Node) measureLinks(ctx context.Context, v collective.View, e *collective.HostEngine) error {
	policy, err := calibration.Parse(n.config.Calibration)
	if err != nil {
		return err
	}
	key := hostsKey(v)
	p := collective.LinkPolicy{Measure: policy.Mode != calibration.Off}
	if policy.Mode == calibration.Auto {
		p.Known = n.links[key]
	}
	cost, err := e.MeasureLinks(ctx, p)
	if err != nil {
		return fmt.Errorf("cluster: measuring the links between %d workers: %w", v.Size(), err)
	}
	if cost != (schedule.Cost{}) {
		if n.links == nil {
			n.links = knownLinks{}
		}
		n.links[key] = cost
	}
	return nil
}

// hostsKey names the hosts of a View by rank: members of one host share its links.
func hostsKey(v collective.View) string {
	var b strings.Builder
	for _, m := range v.Members {
		fmt.Fprint(&b, m.Host)
		for _, a := range m.Addrs {
			fmt.Fprint(&b, " ", a.Addr())
		}
		b.WriteByte(';')
	}
	return b.String()
}
