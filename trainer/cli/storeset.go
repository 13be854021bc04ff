package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ringtrain/ringtrain/trainer/store"
)

// setFlags are the flags of "store set".
type setFlags struct {
	storeFlags
	kind    string
	shape   []int
	version uint64
}

func storeSetCommand(a *app) *cobra.Command {
	var f setFlags
	cmd := &cobra.Command{
		Use:   "set KEY [NUMBER ...] [flags]",
		Short: "Store a value",
		Long: `Store numbers as a tensor under KEY, or bytes. Without NUMBER, read them from stdin. Put
-- before negative numbers. A key keeps its type and shape for good.

` + storeExitCodes,
		Example: "  ringtrain store set head 0.5 1 2\n  ringtrain store set head --if-version 1 -- -0.5 1 2\n  ringtrain store set notes --type bytes <notes.txt",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("store set takes a KEY, and numbers to store")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			v, err := f.value(args[1:], cmd.InOrStdin())
			if err != nil {
				return usage(err)
			}
			version := uint64(store.Any)
			if cmd.Flags().Changed("if-version") {
				version = f.version
			}
			return f.with(func(ctx context.Context, c *store.Client) error {
				now, err := c.Set(ctx, args[0], v, version)
				if err == nil {
					fmt.Fprintf(a.stdout, "%s: %v, version %d\n", args[0], v, now)
				}
				return err
			})
		},
	}
	f.register(cmd.Flags())
	cmd.Flags().StringVar(&f.kind, "type", store.Float64.String(), "`TYPE` of the value: float64, float32 or bytes")
	cmd.Flags().IntSliceVar(&f.shape, "shape", nil, "`DIMENSIONS` of the tensor, separated by commas (default one dimension)")
	cmd.Flags().Uint64Var(&f.version, "if-version", 0, "fail unless KEY has version `N`; 0: unless it does not exist (default any)")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		var absent *pflag.NotExistError
		if errors.As(err, &absent) && strings.ContainsAny(absent.GetSpecifiedName(), "0123456789.") && len(absent.GetSpecifiedName()) == 1 {
			return usagef("put -- before negative numbers, as in: ringtrain store set KEY -- -0.5 1")
		}
		return usage(flagError(cmd, err))
	})
	return cmd
}

// value returns the value in the arguments or, if there are none, in stdin.
func (f *setFlags) value(args []string, stdin io.Reader) (store.Value, error) {
	switch f.kind {
	case store.Bytes.String():
		if len(f.shape) > 0 {
			return store.Value{}, errors.New("--shape needs numbers: it cannot be combined with --type bytes")
		}
		if len(args) > 0 {
			return store.Value{}, fmt.Errorf("--type bytes reads stdin: it takes no %q", args[0])
		}
		b, err := io.ReadAll(io.LimitReader(stdin, store.MaxValue+1))
		return store.Raw(b), err
	case store.Float64.String():
		return parsedTensor[float64](args, stdin, f.shape)
	case store.Float32.String():
		return parsedTensor[float32](args, stdin, f.shape)
	}
	return store.Value{}, fmt.Errorf("--type must be float64, float32 or bytes, not %q", f.kind)
}

// parsedTensor returns the tensor of the numbers in args or, if there are none, in stdin.
func parsedTensor[F float32 | float64](args []string, stdin io.Reader, shape []int) (store.Value, error) {
	bits := 64
	if _, single := any(F(0)).(float32); single {
		bits = 32
	}
	var all []F
	add := func(text string) error {
		x, err := strconv.ParseFloat(text, bits)
		if err != nil {
			return fmt.Errorf("a value must be a number that fits in float%d, not %q", bits, text)
		}
		if len(all) == store.MaxValue/(bits/8) {
			return fmt.Errorf("a value must have at most %d bytes: split it", store.MaxValue)
		}
		all = append(all, F(x))
		return nil
	}
	for _, text := range args {
		if err := add(text); err != nil {
			return store.Value{}, err
		}
	}
	if len(args) == 0 {
		words := bufio.NewScanner(stdin)
		words.Split(bufio.ScanWords)
		for words.Scan() {
			if err := add(words.Text()); err != nil {
				return store.Value{}, fmt.Errorf("stdin: %w", err)
			}
		}
		if err := words.Err(); err != nil {
			return store.Value{}, fmt.Errorf("stdin: %w", err)
		}
	}
	if len(all) == 0 && len(shape) == 0 { // no key can change its shape later
		return store.Value{}, errors.New("there are no numbers to store, neither as arguments nor on stdin; for an empty tensor, add --shape 0")
	}
	return store.Tensor(all, shape...)
}
