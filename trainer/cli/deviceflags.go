package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ringtrain/ringtrain/trainer/job/device"
)

// addDevice adds the flags of a command whose ranks may use GPUs. device is the default of
// --device.
func addDevice(cmd *cobra.Command, f *device.Choice, standard, what string) {
	under(cmd, machineFlags, func(flags *pflag.FlagSet) {
		flags.StringVar(&f.Device, "device", standard, what)
		flags.BoolVar(&f.Share, "share-gpu", false, "let workers share GPUs when this machine has fewer GPUs than workers; slow, for tests")
		flags.StringVar(&f.NCCL, "nccl", "auto", "sum vectors on GPUs with NCCL, `WHEN`: auto (if all ranks have it), must (or fail) or off (the host sums them, through pinned memory, in ring order)")
	})
}

// addGraphs adds the flags about CUDA graphs.
func addGraphs(cmd *cobra.Command, f *device.Graphs) {
	under(cmd, machineFlags, func(flags *pflag.FlagSet) {
		flags.StringVar(&f.How, "graphs", device.GraphsAuto, "run steps on GPUs as CUDA graphs, `HOW`: whole (one graph per step; NCCL sums buckets of gradients during the backward pass), apart (two graphs, with one sum of all gradients between them), off (launch each kernel) or auto (whole where possible)")
		flags.IntVar(&f.PerLaunch, "steps-per-launch", 1, "run `N` steps per graph launch; a stop, or a loss that is not finite, is noticed only after each launch")
	})
}

// addProducts adds the flags about products of matrices.
func addProducts(cmd *cobra.Command, f *device.Products) {
	under(cmd, machineFlags, func(flags *pflag.FlagSet) {
		flags.BoolVar(&f.TF32, "tf32", false, "on GPUs, speed up matrix products and cuDNN's convolutions: round factors to 10 bits of fraction")
		flags.BoolVar(&f.BF16, "bf16", false, "on GPUs, speed them up further: round factors to bfloat16 (7 bits of fraction); weights, gradients and sums stay float32")
		flags.StringVar(&f.Timed, "time-products", "", "time cuBLASLt's kernels for each matrix product and cuDNN's for each convolution, use the fastest, and keep the choice in `DIR` on this machine (products-*.json); later runs with the same DIR give the same bits")
	})
}
