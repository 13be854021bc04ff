//go:build linux && (amd64 || arm64) && !static

package kernels

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A mutation removes something from a copy of the source. Then the tests of these kernels must
// fail, and no others. Some tests run several kernels.
type mutation struct {
	old, replacement string
	breaks           []string
	says             string // on stderr, by one of them
}

var mutations = []mutation{
	{ // the barrier between writing the columns' partial sums and adding them
		"  part[threadIdx.y][threadIdx.x] = s;\n  __syncthreads();", "  part[threadIdx.y][threadIdx.x] = s;",
		[]string{"sum_rows"}, "kernel sum_rows, block (0,0,0), thread 32 of (32,32,1): writes shared memory",
	},
	{ // the barrier between filling shared memory and reading it
		"squares[i] = __dmul_rn(v, v);\n    }\n  }\n  __syncthreads();", "squares[i] = __dmul_rn(v, v);\n    }\n  }",
		[]string{"squared_norm", "squared_norm_arena", "adam_arena", "sgd_arena"}, "kernel squared_norm, ",
	},
	{ // the barrier before shared memory is reused
		"sum = __dadd_rn(sum, (double)some[i]);\n    __syncthreads();", "sum = __dadd_rn(sum, (double)some[i]);",
		[]string{"adam", "sgd"}, "with no barrier between",
	},
	{ // a barrier that some threads do not reach
		"  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;\n  __syncthreads();", "  if (threadIdx.x % 32 == 0) {\n    part[threadIdx.x / 32] = sum;\n    __syncthreads();\n  }",
		[]string{"conv2d_grad_parts", "conv2d_grad"}, "the rest will never come",
	},
	{ // the barrier between writing both sums of columns and adding them
		"  shift[threadIdx.y][threadIdx.x] = t;\n  __syncthreads();", "  shift[threadIdx.y][threadIdx.x] = t;",
		[]string{"layer_norm", "layer_norm_grad", "layer_norm_weights"}, "kernel layer_norm_weights, ",
	},
	{ // the end of a row whose length is not a multiple of four
		"      if (4 * block + j < width) y[at + j]", "      y[at + j]",
		[]string{"dropout"}, "outside of all memory",
	},
	{ // the edge of an image
		"bool inside = r >= 0 && r < s.height && q >= 0 && q < s.width;", "bool inside = true;",
		[]string{"conv2d"}, "kernel conv2d, ",
	},
	{ // the barrier between writing units and scoring moves by them
		"    set_units(t, p, s, row);\n    __syncthreads();", "    set_units(t, p, s, row);",
		[]string{"transitions", "transitions_grad"}, "kernel transitions, ",
	},
	{ // the last element
		"e < (i64)rows * width; e += global_threads()) y[e] = data", "e <= (i64)rows * width; e += global_threads()) y[e] = data",
		[]string{"gather_bytes", "gather_words"}, "kernel gather_words, ",
	},
}

var failure = regexp.MustCompile(`(?m)^ +--- FAIL: TestParity/(\S+)`)

func TestParityFindsMutations(t *testing.T) {
	newHarness(t) // skips where there is no compiler
	text := Source()
	var want []string
	for _, m := range mutations {
		require.Equal(t, 1, strings.Count(text, m.old), m.old)
		text = strings.Replace(text, m.old, m.replacement, 1)
		want = append(want, m.breaks...)
	}
	path := filepath.Join(t.TempDir(), "mutant.cu")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestParity$", "-test.v")
	cmd.Env = append(os.Environ(), mutant+"="+path)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, "%s", out)
	var failed []string
	for _, match := range failure.FindAllStringSubmatch(string(out), -1) {
		failed = append(failed, match[1])
	}
	require.ElementsMatch(t, want, failed, "%s", out)
	for _, m := range mutations {
		require.Contains(t, string(out), m.says)
	}
}
