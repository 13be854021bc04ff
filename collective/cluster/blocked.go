package cluster

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/tcp"
)

// A BlockedError reports that members that gossip with each other cannot open the
// connections of a Group, in which direction, and to which ports.
type BlockedError struct {
	Rank  int    // the other
	Name  string // its name
	In    bool   // it cannot reach this machine; false: this machine cannot reach it
	Addrs []netip.AddrPort
	Err   error
}

// Error returns one line that says what to do.
func (e *BlockedError) Error() string {
	addrs := make([]string, len(e.Addrs))
	for i, a := range e.Addrs {
		addrs[i] = a.String()
	}
	at := strings.Join(addrs, " or ")
	what := fmt.Sprintf("this machine cannot connect to rank %d (%s) at %s", e.Rank, e.Name, at)
	if e.In {
		what = fmt.Sprintf("rank %d (%s) has not connected to this machine at %s", e.Rank, e.Name, at)
	}
	cause := strings.ReplaceAll(e.Err.Error(), "\n", "; ")
	return fmt.Sprintf("%s, although gossip works: a firewall may block this TCP port in this direction, or the process has exited or is not ready to connect yet: allow all TCP ports between the machines (%s)", what, cause)
}

// Unwrap returns the error of connecting.
func (e *BlockedError) Unwrap() error { return e.Err }

// blocked turns an error of connecting the members of a View into a BlockedError, if
// it is one.
func blocked(v collective.View, err error) error {
	var e *collective.RankError
	if !errors.As(err, &e) || e.Phase != "connect" || errors.Is(err, tcp.ErrRefused) || e.Rank < 0 || e.Rank >= v.Size() {
		return err
	}
	var report *collective.ReportedError
	var dial *net.OpError
	absent := errors.Is(err, collective.ErrNotConnected)
	switch isReport := errors.As(err, &report); {
	case isReport && e.Rank == v.Self && report.By >= 0 && report.By < v.Size() && absent:
		return &BlockedError{Rank: report.By, Name: v.Name(report.By), Addrs: v.Members[report.By].Addrs, Err: err}
	case isReport && e.Rank == v.Self && report.By >= 0 && report.By < v.Size():
		return &BlockedError{Rank: report.By, Name: v.Name(report.By), In: true, Addrs: v.Members[v.Self].Addrs, Err: err}
	case isReport || e.Rank == v.Self:
	case errors.As(err, &dial) && dial.Op == "dial":
		return &BlockedError{Rank: e.Rank, Name: v.Name(e.Rank), Addrs: v.Members[e.Rank].Addrs, Err: err}
	case absent:
		return &BlockedError{Rank: e.Rank, Name: v.Name(e.Rank), In: true, Addrs: v.Members[v.Self].Addrs, Err: err}
	}
	return err
}
