package cluster

import (
	"os"

	"github.com/ringtrain/ringtrain/collective/calibration"
	"github.com/ringtrain/ringtrain/collective/userfiles"
	"github.com/ringtrain/ringtrain/collective/version"
)

// calibration returns how this host's ranks make their choices.
func (n *Node) calibration() (calibration.Policy, error) {
	p, err := calibration.Parse(n.config.Calibration)
	p.Store = Choices(n.config.CacheDir)
	return p, err
}

// Choices returns the store of this host's choices in a directory, by default that of
// Config.CacheDir.
func Choices(dir string) *calibration.Store {
	if dir == "" {
		dir, _ = userfiles.CacheDir()
	}
	return &calibration.Store{Dir: dir, Host: calibration.ThisHost(os.DirFS("/")), Version: version.Build(version.Recorded())}
}

// calibrated records the choices of the newest Group.
func (n *Node) calibrated(r calibration.Report) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.report = r
}

// Calibration reports the choices that the ranks of this host have made for the newest
// Group. It is zero if they share no memory.
func (n *Node) Calibration() calibration.Report {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.report
}
