package cli

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"github.com/ringtrain/ringtrain/trainer"
)

// bucketFlags say how gradients leave.
type bucketFlags struct {
	bucket int // bytes; 0: as ever
}

func (f *bucketFlags) add(flags *pflag.FlagSet) {
	flags.IntVar(&f.bucket, "bucket", trainer.DefaultBucket, "send gradients in buckets of at least `BYTES`, each as soon as the backward pass has completed it; a large value sends all at once")
}

// check finds what is wrong with the flag.
func (f *bucketFlags) check() error {
	if f.bucket < 1 {
		return fmt.Errorf("--bucket must be at least 1 byte, not %d", f.bucket)
	}
	return nil
}

// bytes is the least size of a bucket.
func (f *bucketFlags) bytes() int { return cmp.Or(f.bucket, trainer.DefaultBucket) }

// overlap says which gradients leave a GPU while the backward pass makes others;
// "" if all leave at once.
func (r *rank) overlap(c *trainer.Config) string {
	apart := c.Recording != nil && c.Recording.Apart
	whole := c.Recording == nil && (c.Accumulate || c.Reduce == trainer.ReduceSum)
	if r.gpu == nil || r.group.Size() == 1 || !r.gpu.byNCCL() || apart || whole {
		return ""
	}
	lens := trainer.Buckets(r.model.Params(), r.settings.flags.bytes())
	if len(lens) == 1 {
		return ""
	}
	bytes := fmt.Sprint(4 * slices.Max(lens))
	if least := slices.Min(lens); least < slices.Max(lens) {
		bytes = fmt.Sprintf("%d to %s", 4*least, bytes)
	}
	return fmt.Sprintf("; gradients leave in %d buckets of %s bytes during the backward pass", len(lens), bytes)
}
