package cluster

import (
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/userfiles"
)

// The variables with which a launcher configures its workers. Each is a field of
// Config; LOCAL_RANK is Local. The key itself is never in the environment.
const (
	EnvNode      = "RINGTRAIN_NODE"
	EnvLocal     = "RINGTRAIN_LOCAL_RANK"
	EnvLocalSize = "RINGTRAIN_LOCAL_SIZE"
	EnvRole      = "RINGTRAIN_ROLE"
	EnvNodes     = "RINGTRAIN_NODES"
	EnvNodeRank  = "RINGTRAIN_NODE_RANK"
	EnvRank0     = "RINGTRAIN_RANK0"
	EnvJoin      = "RINGTRAIN_JOIN"
	EnvBind      = "RINGTRAIN_BIND"
	EnvCluster   = "RINGTRAIN_CLUSTER"
	EnvKeyFile   = "RINGTRAIN_KEY_FILE"
	EnvInsecure  = "RINGTRAIN_INSECURE"
	EnvDataAddrs = "RINGTRAIN_DATA_ADDRS"
	EnvMinSize   = "RINGTRAIN_MIN_SIZE"
	EnvTransport = "RINGTRAIN_TRANSPORT"
	EnvStreams   = "RINGTRAIN_STREAMS"

	// These two are also for users. A worker inherits them from its launcher.
	EnvCalibration = "RINGTRAIN_CALIBRATION"
	EnvCacheDir    = userfiles.EnvCache
)

// FromEnv returns the Config that a launcher passed on with Config.Environ. ok is
// false if there was no launcher.
func FromEnv() (c Config, ok bool, err error) {
	if c.Node = os.Getenv(EnvNode); c.Node == "" {
		return c, false, nil
	}
	for name, field := range map[string]*int{EnvLocal: &c.Local, EnvLocalSize: &c.LocalSize, EnvNodes: &c.Nodes, EnvNodeRank: &c.NodeRank, EnvMinSize: &c.MinSize, EnvStreams: &c.Streams} {
		text, set := os.LookupEnv(name)
		if !set {
			continue
		}
		if *field, err = strconv.Atoi(text); err != nil {
			return c, true, fmt.Errorf("cluster: %s=%q is not a number", name, text)
		}
	}
	switch text := os.Getenv(EnvRole); text {
	case "", collective.Worker.String():
	case collective.Server.String():
		c.Role = collective.Server
	default:
		return c, true, fmt.Errorf("cluster: %s=%q is neither %v nor %v", EnvRole, text, collective.Worker, collective.Server)
	}
	if text := os.Getenv(EnvBind); text != "" {
		if c.Bind, err = netip.ParseAddrPort(text); err != nil {
			return c, true, fmt.Errorf("cluster: %s=%q is not ADDRESS:PORT", EnvBind, text)
		}
	}
	if text := os.Getenv(EnvJoin); text != "" {
		c.Join = strings.Split(text, ",")
	}
	if text := os.Getenv(EnvDataAddrs); text != "" {
		for part := range strings.SplitSeq(text, ",") {
			addr, err := netip.ParseAddr(part)
			if err != nil {
				return c, true, fmt.Errorf("cluster: %s=%q is not a list of addresses", EnvDataAddrs, text)
			}
			c.DataAddrs = append(c.DataAddrs, addr)
		}
	}
	if text := os.Getenv(EnvInsecure); text != "" {
		if c.Insecure, err = strconv.ParseBool(text); err != nil {
			return c, true, fmt.Errorf("cluster: %s=%q is neither true nor false", EnvInsecure, text)
		}
	}
	c.Cluster, c.KeyFile, c.Transport, c.Rank0 = os.Getenv(EnvCluster), os.Getenv(EnvKeyFile), os.Getenv(EnvTransport), os.Getenv(EnvRank0)
	c.Calibration, c.CacheDir = os.Getenv(EnvCalibration), os.Getenv(EnvCacheDir)
	return c, true, nil
}

// Environ returns the Config as variables for a worker's environment. They do not
// include Key: a worker reads KeyFile.
func (c Config) Environ() []string {
	env := []string{
		EnvNode + "=" + c.Node,
		EnvLocal + "=" + strconv.Itoa(c.Local),
		EnvLocalSize + "=" + strconv.Itoa(c.LocalSize),
		EnvRole + "=" + c.Role.String(),
		EnvNodes + "=" + strconv.Itoa(c.Nodes),
		EnvNodeRank + "=" + strconv.Itoa(c.NodeRank),
		EnvRank0 + "=" + c.Rank0,
		EnvCluster + "=" + c.Cluster,
		EnvJoin + "=" + strings.Join(c.Join, ","),
		EnvKeyFile + "=" + c.KeyFile,
		EnvInsecure + "=" + strconv.FormatBool(c.Insecure),
		EnvMinSize + "=" + strconv.Itoa(c.MinSize),
		EnvTransport + "=" + c.Transport,
		EnvStreams + "=" + strconv.Itoa(c.Streams),
	}
	bind := "" // set even if empty, so that the launcher's own variable is not inherited
	if c.Bind.IsValid() {
		bind = c.Bind.String()
	}
	if c.Calibration != "" {
		env = append(env, EnvCalibration+"="+c.Calibration)
	}
	if c.CacheDir != "" {
		env = append(env, EnvCacheDir+"="+c.CacheDir)
	}
	var addrs []string
	for _, a := range c.DataAddrs {
		addrs = append(addrs, a.String())
	}
	return append(env, EnvBind+"="+bind, EnvDataAddrs+"="+strings.Join(addrs, ","))
}
