package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/spf13/cobra"

	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/secret"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/store"
)

// defaultStore is where a store serves, and where the commands look for one.
const (
	storePort    = "7947"
	defaultStore = "127.0.0.1:" + storePort
)

func storeCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "store",
		Short: "Keep named tensors on disk, for several processes",
		Long: `Keep named tensors on disk and serve them to other processes, which may be on other
machines. docs/store.md describes the store, and the package that programs use.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(storeServeCommand(a), storeGetCommand(a), storeSetCommand(a), storeKeysCommand(a))
	return cmd
}

// serveFlags are the flags of "store serve".
type serveFlags struct {
	bind     string
	sync     string
	keyFile  string
	insecure bool
}

func storeServeCommand(a *app) *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve DIR [flags]",
		Short: "Serve a store until Ctrl-C",
		Long: `Serve the store in DIR until Ctrl-C. DIR is created if it does not exist. An update is
acknowledged after it is on disk. If this process is killed, start it again with the same
DIR and address: clients wait for it, and no acknowledged update is lost.

` + exitCodes("the disk failed", "wrong usage; the directory, key or address cannot be used"),
		Example: "  ringtrain store serve params\n  ringtrain store serve params --bind 10.0.0.1 --key-file job.key",
		Args:    exactly("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkEmpty(cmd.Flags(), "bind", "key-file"); err != nil {
				return usage(err)
			}
			return serveUntilSignal(context.Background(), func(ctx context.Context) error { return a.serveStore(ctx, args[0], f) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.bind, "bind", defaultStore, "listen at `ADDRESS` or ADDRESS:PORT")
	flags.StringVar(&f.sync, "store-sync", "always", "sync the disk `WHEN`: always (at once), or at most once per time, such as 1s; in both cases an update is acknowledged after it is synced")
	flags.StringVar(&f.keyFile, "key-file", "", "encrypt and authenticate all connections with the key in `FILE`, made by ringtrain keygen (default $"+cluster.EnvKeyFile+")")
	flags.BoolVar(&f.insecure, "insecure", false, "without a key, serve anyone who can reach the address")
	return cmd
}

// serveStore runs "store serve".
func (a *app) serveStore(ctx context.Context, dir string, f serveFlags) (err error) {
	interval, err := f.interval()
	if err != nil {
		return usage(err)
	}
	key, err := findKey(f.keyFile)
	if err != nil {
		return usage(err)
	}
	addr := f.bind
	if _, _, err := net.SplitHostPort(addr); err != nil {
		addr = net.JoinHostPort(addr, storePort)
	}
	db, err := store.Open(dir, store.Options{Sync: interval})
	if err != nil {
		return usage(err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	s, err := store.Serve(db, store.ServerConfig{Addr: addr, Key: key, Insecure: f.insecure, Log: func(line string) { fmt.Fprintln(a.stderr, line) }})
	switch {
	case errors.Is(err, store.ErrNoKey):
		return usagef("--bind %s: without a key, every process that can reach this address could read and change the store: name the file of one with --key-file (ringtrain keygen makes it), or give --insecure on a network that you trust", f.bind)
	case err != nil:
		return usagef("--bind %s: %w", f.bind, err)
	}
	at := s.Addr().String()
	if s.Addr().Addr().IsUnspecified() { // listeners at 0.0.0.0 call it ::
		host, _, _ := net.SplitHostPort(addr)
		at = net.JoinHostPort(host, fmt.Sprint(s.Addr().Port()))
	}
	fmt.Fprintf(a.stderr, "serving %s at %s\n", dir, at)
	<-ctx.Done()
	return s.Close()
}

// maxInterval keeps the acknowledgements of a slow disk within the patience of clients.
const maxInterval = 10 * time.Second

// interval returns the time between syncs.
func (f serveFlags) interval() (time.Duration, error) {
	if f.sync == "always" {
		return 0, nil
	}
	d, err := time.ParseDuration(f.sync)
	if err != nil || d <= 0 || d > maxInterval {
		return 0, fmt.Errorf("--store-sync must be always or a time of at most %v, such as 1s, not %q", maxInterval, f.sync)
	}
	return d, nil
}

// findKey reads the key in a file, or else the one in the environment. Without either it
// returns nil.
func findKey(named string) (*secret.Key, error) {
	path, err := crew.FindKey(named)
	if err != nil || path == "" {
		return nil, err
	}
	key, err := secret.ReadFile(path)
	return &key, err
}
