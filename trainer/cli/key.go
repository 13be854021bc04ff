package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/secret"
)

func keygenCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "keygen FILE",
		Short: "Generate the key that secures a job",
		Long: `Generate a key and write it to FILE, which only its owner may read, or to stdout if FILE
is -. Copy the file to every machine of the job over a secure channel, such as scp -p, and
give its path to train as --key-file or in the variable ` + cluster.EnvKeyFile + `. Holders of
the key can join; nobody else can join or read traffic.`,
		Example: "  ringtrain keygen job.key\n  ringtrain train examples/mnist.cfg --nodes 2 --key-file job.key",
		Args:    exactly("FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			key := secret.New()
			if args[0] == "-" {
				fmt.Fprintln(a.stdout, key.Text())
				return nil
			}
			if err := secret.WriteFile(args[0], key); err != nil {
				return usage(err)
			}
			fmt.Fprintf(a.stdout, "%s: a new key; copy it to every machine of the job and give --key-file %s\n", args[0], args[0])
			return nil
		},
	}
}
