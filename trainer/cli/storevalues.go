package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/trainer/store"
)

// storeFlags are the flags with which commands find a store.
type storeFlags struct {
	all     *pflag.FlagSet // of the command
	addr    string
	keyFile string
	timeout time.Duration
}

func (f *storeFlags) register(flags *pflag.FlagSet) {
	f.all = flags
	flags.StringVar(&f.addr, "store", defaultStore, "`HOST:PORT` where ringtrain store serve runs")
	flags.StringVar(&f.keyFile, "key-file", "", "`FILE` with the key of the store (default $"+cluster.EnvKeyFile+")")
	flags.DurationVar(&f.timeout, "timeout", 5*time.Second, "wait `TIME` for the store")
}

// with calls do with a client of the store.
func (f *storeFlags) with(do func(context.Context, *store.Client) error) error {
	if f.timeout <= 0 {
		return usagef("--timeout must be greater than 0, not %v", f.timeout)
	}
	if err := checkEmpty(f.all, "store", "key-file"); err != nil {
		return usage(err)
	}
	key, err := findKey(f.keyFile)
	if err != nil {
		return usage(err)
	}
	c, err := store.NewClient(store.ClientConfig{Addr: f.addr, Key: key, Patience: f.timeout})
	if err != nil {
		return usagef("--store: %w", err)
	}
	return untilSignal(context.Background(), func(ctx context.Context) error {
		err := do(ctx, c)
		if errors.Is(err, store.ErrRefused) {
			err = usage(err)
		}
		return errors.Join(err, c.Close())
	})
}

const storeExitCodes = "Exit codes: 0 done, 1 failed, 2 wrong usage or refused, 130 stopped by Ctrl-C."

func storeGetCommand(a *app) *cobra.Command {
	var f storeFlags
	asJSON := false
	cmd := &cobra.Command{
		Use:   "get KEY [flags]",
		Short: "Print a value of a store",
		Long: `Print the value of KEY: a tensor as numbers, with a line for each run of its last
dimension, and bytes as they are. With --json, print also its type, shape and version.

` + storeExitCodes,
		Example: "  ringtrain store get head\n  ringtrain store get head --json --store 10.0.0.1:7947 --key-file job.key",
		Args:    exactly("KEY"),
		RunE: func(_ *cobra.Command, args []string) error {
			return f.with(func(ctx context.Context, c *store.Client) error {
				v, version, err := c.Get(ctx, args[0])
				if err != nil {
					return err
				}
				numbers, err := numbersOf(v)
				switch {
				case err != nil:
					return err
				case asJSON:
					return a.writeJSON(storedValue(args[0], v, version, numbers))
				case v.Type == store.Bytes:
					_, err := a.stdout.Write(v.Data)
					return err
				}
				return writeNumbers(a.stdout, v, numbers)
			})
		},
	}
	f.register(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// numbersOf returns the elements of a tensor as text, each in the fewest digits that keep
// its bits.
func numbersOf(v store.Value) (numbers []string, err error) {
	switch v.Type {
	case store.Float64:
		all, wrong := store.Floats[float64](v)
		for _, x := range all {
			numbers = append(numbers, strconv.FormatFloat(x, 'g', -1, 64))
		}
		err = wrong
	case store.Float32:
		all, wrong := store.Floats[float32](v)
		for _, x := range all {
			numbers = append(numbers, strconv.FormatFloat(float64(x), 'g', -1, 32))
		}
		err = wrong
	}
	return numbers, err
}

// writeNumbers writes a tensor as lines of its last dimension.
func writeNumbers(w io.Writer, v store.Value, numbers []string) error {
	width := 1
	if n := len(v.Shape); n > 0 {
		width = v.Shape[n-1]
	}
	out := bufio.NewWriter(w)
	for i, x := range numbers {
		_, _ = out.WriteString(x) // Flush returns the error
		if (i+1)%width == 0 {
			_ = out.WriteByte('\n')
		} else {
			_ = out.WriteByte(' ')
		}
	}
	return out.Flush()
}

// A storedJSON is a value of a store, for --json.
type storedJSON struct {
	Key     string `json:"key"`
	Version uint64 `json:"version"`
	Type    string `json:"type"`
	Shape   []int  `json:"shape,omitempty"`
	Values  []any  `json:"values,omitempty"` // numbers; those that are not finite as strings
	Bytes   []byte `json:"bytes,omitempty"`  // base64
}

func storedValue(key string, v store.Value, version uint64, numbers []string) storedJSON {
	s := storedJSON{Key: key, Version: version, Type: v.Type.String(), Shape: v.Shape}
	if v.Type == store.Bytes {
		s.Bytes = v.Data
	}
	for _, text := range numbers {
		x, _ := strconv.ParseFloat(text, 64) // FormatFloat wrote it
		if math.IsNaN(x) || math.IsInf(x, 0) {
			s.Values = append(s.Values, text)
		} else {
			s.Values = append(s.Values, number(text))
		}
	}
	return s
}

// A number is the text of a finite number, as JSON.
type number string

// MarshalJSON returns the text.
func (n number) MarshalJSON() ([]byte, error) { return []byte(n), nil }

func storeKeysCommand(a *app) *cobra.Command {
	var f storeFlags
	asJSON := false
	cmd := &cobra.Command{
		Use:     "keys [PREFIX] [flags]",
		Short:   "List the keys of a store",
		Long:    "List the keys that begin with PREFIX, or all, one per line in byte order.\n\n" + storeExitCodes,
		Example: "  ringtrain store keys\n  ringtrain store keys trainer --json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("store keys takes at most one PREFIX, not %d", len(args))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			return f.with(func(ctx context.Context, c *store.Client) error {
				keys, err := c.Keys(ctx, append(args, "")[0])
				switch {
				case err != nil:
					return err
				case asJSON:
					return a.writeJSON(append([]string{}, keys...))
				}
				for _, k := range keys {
					fmt.Fprintln(a.stdout, k)
				}
				return nil
			})
		},
	}
	f.register(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON array")
	return cmd
}
