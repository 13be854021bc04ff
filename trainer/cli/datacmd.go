package cli

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ringtrain/ringtrain/nn/text"
	"github.com/ringtrain/ringtrain/trainer/config"
	"github.com/ringtrain/ringtrain/trainer/data"
	"github.com/ringtrain/ringtrain/trainer/job/machine"
)

func dataCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "data",
		Short: "Generate datasets",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(digitsCommand(a), sentencesCommand(a))
	return cmd
}

// unwritten returns the error of files that could not be written: the user's mistake, unless
// the disk is full.
func unwritten(err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return err
	}
	return usage(err)
}

// addReplace adds --force.
func addReplace(cmd *cobra.Command, force *bool) {
	cmd.Flags().BoolVar(force, "force", false, "replace files in DIR that have other content")
}

func digitsCommand(a *app) *cobra.Command {
	var o data.DigitsOptions
	var force bool
	cmd := &cobra.Command{
		Use:   "digits DIR [flags]",
		Short: "Generate synthetic digits as IDX files",
		Long: `Generate synthetic digits and write them to DIR as four compressed IDX files, like those of
MNIST. Without flags they are the images that train uses by default.`,
		Example: "  ringtrain data digits DIR\n  ringtrain train examples/mnist.cfg --data mnist:DIR",
		Args:    exactly("directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, name := range []string{"train", "test", "side"} {
				if n, _ := cmd.Flags().GetInt(name); n < 1 {
					return usagef("--%s must be at least 1, not %d", name, n)
				}
			}
			if need, room := (float64(o.Train)+float64(o.Test))*float64(o.Side)*float64(o.Side), machine.Memory(); need > float64(room) {
				return usagef("%d + %d images of %dx%d take %.3g GB, more than the %.3g GB of memory of this machine: lower --train, --test or --side", o.Train, o.Test, o.Side, o.Side, need/1e9, float64(room)/1e9)
			}
			train, test := data.Generate(o)
			if err := data.MNISTConflict(args[0], train, test, force); err != nil {
				return usage(err)
			}
			if err := data.WriteMNIST(args[0], train, test); err != nil {
				return unwritten(err)
			}
			fmt.Fprintf(a.stdout, "%s: %d training and %d test images of %dx%d\n", args[0], train.Rows, test.Rows, train.Height, train.Width)
			return nil
		},
	}
	cmd.Flags().IntVar(&o.Train, "train", 20_000, "`N` training images")
	cmd.Flags().IntVar(&o.Test, "test", 4_000, "`N` test images")
	cmd.Flags().IntVar(&o.Side, "side", 28, "`N` pixels wide and high")
	cmd.Flags().Uint64Var(&o.Seed, "seed", 0, "seed `N`; different seeds give different digits (default 0)")
	addReplace(cmd, &force)
	return cmd
}

// mostSentences keeps files of sentences below about 10 GB.
const mostSentences = 50_000_000

func sentencesCommand(a *app) *cobra.Command {
	var o data.SentencesOptions
	var format string
	var force bool
	var writable []string
	formats := map[string]text.Format{}
	for _, f := range text.Formats() {
		if f.Write != nil {
			writable, formats[f.Name] = append(writable, f.Name), f
		}
	}
	cmd := &cobra.Command{
		Use:   "ner DIR [flags]",
		Short: "Generate synthetic sentences with named entities",
		Long: `Generate synthetic sentences with the names of persons, places, organisations and other
things, and write them to DIR as two files: train, and dev with a quarter as many sentences.
Training never sees 30 % of the names in dev, and many names have different labels in
different sentences, so a list of names does not suffice.`,
		Example: "  ringtrain data ner DIR --sentences 20000\n  ringtrain data ner DIR --format jsonl",
		Args:    exactly("directory"),
		RunE: func(_ *cobra.Command, args []string) error {
			f, known := formats[format]
			switch {
			case o.Train < 1 || o.Train > mostSentences:
				return usagef("--sentences must be from 1 to %d, not %d", mostSentences, o.Train)
			case !known:
				return usagef("--format must be %s, not %q", config.Either(writable), format)
			}
			o.Dev = (o.Train + 3) / 4
			if err := data.SentencesConflict(args[0], f, o, force); err != nil {
				return usage(err)
			}
			if err := data.WriteSentences(args[0], f, o); err != nil {
				return unwritten(err)
			}
			fmt.Fprintf(a.stdout, "%s: %d training and %d dev sentences as %s\n", args[0], o.Train, o.Dev, format)
			return nil
		},
	}
	cmd.Flags().IntVar(&o.Train, "sentences", 2_000, "`N` sentences to train on")
	cmd.Flags().Uint64Var(&o.Seed, "seed", 0, "seed `N`; different seeds give different names and sentences (default 0)")
	addReplace(cmd, &force)
	cmd.Flags().StringVar(&format, "format", "iob", "write `FORMAT`: "+strings.Join(writable, ", "))
	return cmd
}
