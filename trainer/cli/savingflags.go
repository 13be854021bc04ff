package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/ringtrain/ringtrain/trainer/job"
)

// addSaving adds the flags about checkpoints and weights.
func addSaving(flags *pflag.FlagSet, f *job.Saving) {
	flags.StringVar(&f.Dir, "out", "", "write the trained weights (model.safetensors) and those of the best evaluation (model-best.safetensors) to `DIR` on every machine, and checkpoints (step-*.safetensors) on the machine of rank 0")
	flags.StringVar(&f.Fallback, "out-fallback", "", "write the last checkpoint and the weights to `DIR` if --out still fails after a minute of retries")
	flags.StringVar(&f.Resume, "resume", "", "continue from the newest intact checkpoint in `DIR`; give the flag on all machines, though only one needs the checkpoint (--out defaults to the same DIR)")
	flags.StringVar(&f.Init, "init", "", "start from the weights in `FILE`, or in the --out of another run, instead of random ones; only the machine of rank 0 needs it (--resume wins)")
	flags.IntVar(&f.Every, "checkpoint-every", 0, "write a checkpoint every `N` steps (default only at the end and when stopped)")
	flags.IntVar(&f.Keep, "keep", 3, "keep the newest `N` checkpoints; 0 keeps all")
	flags.BoolVar(&f.Force, "force", false, "take over --out and --server-dir"+forceFrom)
	flags.BoolVar(&f.Require, "require-checkpoint", false, "fail as soon as a checkpoint cannot be written (default warn and continue; the last one is always required)")
}

// forceFrom is the end of the usage of --force.
const forceFrom = " from a job on another machine that no longer runs; never from a process that is alive on this machine"

// checkSaving refuses values that cannot be meant, such as an unset variable of a script.
func checkSaving(flags *pflag.FlagSet, f *job.Saving) error {
	if err := checkEmpty(flags, "resume", "init", "out", "out-fallback"); err != nil {
		return err
	}
	switch {
	case flags.Changed("checkpoint-every") && f.Every < 1:
		return fmt.Errorf("--checkpoint-every must be at least 1, not %d", f.Every)
	case flags.Changed("keep") && f.Keep >= 0 && f.Dir == "" && f.Resume == "":
		return errors.New("--checkpoint-every, --keep, --out-fallback and --require-checkpoint need --out: say where checkpoints go")
	}
	return nil
}
