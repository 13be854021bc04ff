package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ringtrain/ringtrain/trainer/config"
	"github.com/ringtrain/ringtrain/trainer/job"
)

// readsConfig marks commands that take overrides of a config's values.
const readsConfig = "reads a config"

// overridable marks a command as one that takes --section.key VALUE.
func overridable(cmd *cobra.Command) *cobra.Command {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[readsConfig] = "yes"
	return cmd
}

func configCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check, print and explain configs",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	f := job.Spec{Catalog: a.catalog}
	check := &cobra.Command{
		Use:   "check CONFIG [flags] [--section.key VALUE ...]",
		Short: "Check whether train would accept a config",
		Long: `Read a config as train does, with its overrides, and build the model and the optimizer
that it describes. The exit code is 0 if train would accept the config. Otherwise it is 2,
and one line says what is wrong and, of mistakes in the config, in which file and line.`,
		Example: "  ringtrain config check examples/mnist.cfg --optimizer.learn_rate 0.01",
		Args:    oneConfig,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkData(cmd.Flags(), f.Options); err != nil {
				return usage(err)
			}
			f.Config, f.Overrides = args[0], a.overrides
			s, err := f.Settle()
			if err != nil {
				return err
			}
			for _, warning := range s.Config.Warnings() {
				fmt.Fprintf(a.stderr, "ringtrain: warning: %s\n", warning)
			}
			fmt.Fprintf(a.stdout, "%s: train accepts it\n", args[0])
			return nil
		},
	}
	addData(check.Flags(), a.catalog, &f.Data, &f.Options)
	asJSON := false
	show := &cobra.Command{
		Use:   "print CONFIG [flags] [--section.key VALUE ...]",
		Short: "Print a config after overrides and references",
		Long: `Print a config after overrides are applied and references are replaced. Functions are
printed as written and not called.`,
		Example: "  ringtrain config print examples/mnist.cfg --training.batch_size 64 --json",
		Args:    oneConfig,
		RunE: func(_ *cobra.Command, args []string) error {
			cfg, err := config.Load(args[0], a.overrides)
			if err != nil {
				return usage(err)
			}
			if asJSON {
				_, _ = a.stdout.Write(cfg.JSON()) // stdout keeps its failure
				return nil
			}
			fmt.Fprint(a.stdout, cfg.Text())
			return nil
		},
	}
	show.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	fill := &cobra.Command{
		Use:     "fill CONFIG [flags] [--section.key VALUE ...]",
		Short:   "Print a config with the defaults of its functions",
		Long:    "Print a config as print does, and add every argument that has a default.",
		Example: "  ringtrain config fill examples/mnist.cfg > full.cfg",
		Args:    oneConfig,
		RunE: func(_ *cobra.Command, args []string) error {
			cfg, err := config.Load(args[0], a.overrides)
			if err == nil {
				cfg, err = a.catalog.Registry.Fill(cfg)
			}
			if err != nil {
				return usage(err)
			}
			fmt.Fprint(a.stdout, cfg.Text())
			return nil
		},
	}
	cmd.AddCommand(overridable(check), overridable(show), overridable(fill), explainCommand(a))
	return cmd
}

func explainCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "explain [KEY]",
		Short: "Explain a key or a function of a config",
		Long: `Explain KEY: its meaning, type and default, and where it comes from. KEY can be a key such
as training.batch_size, a section, or a function such as Adam.v1. Without KEY, list the
sections and the functions.`,
		Example: "  ringtrain config explain training.batch_size\n  ringtrain config explain optimizer\n  ringtrain config explain slanted_triangular.v1",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("config explain takes one KEY, not %d", len(args))
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return job.Manual(a.catalog).Names(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := job.Manual(a.catalog).Explain(strings.Join(args, ""))
			if err != nil {
				return usage(err)
			}
			fmt.Fprint(a.stdout, text)
			return nil
		},
	}
}
