// Package kernels contains the CUDA source of everything that a network computes on a GPU,
// except matrix products. Each kernel's comment names the method of nn/cpu that it equals,
// and says whether it does so bit for bit.
//
// The files are one translation unit, see [Source]. Compile it by NVRTC with --std=c++17 and
// no other option. It includes no header. nn's layout of hyper-parameters and its BlockSize
// are macros. The kernels' structs have twins in this package.
//
// # Launching
//
// Arguments are as in the C declarations: pointers to float32 or int32 in device memory,
// 32-bit ints, 64-bit counts, and structs by value. The Shape of a [Kernel] gives the numbers
// of blocks and threads for n items, see [Shape.Of].
//
// Kernels of Shape Elements loop over their elements with the stride of the grid, so any grid
// is correct. They load and store four elements at a time if all pointers are multiples of 16
// bytes. No kernel allocates memory, waits for the host or needs dynamic shared memory, so
// all can be captured. The order of sums depends only on shapes and grids, so the same launch
// gives the same bits in every run.
package kernels

import (
	"embed"
	"fmt"
	"strings"

	"github.com/ringtrain/ringtrain/nn"
)

//go:embed *.cu
var files embed.FS

// parts lists the files in the order of Source.
var parts = []string{"prelude.cu", "vector.cu", "bf16.cu", "bias.cu", "random.cu", "softmax.cu", "regression.cu", "update.cu", "conv.cu", "pool.cu", "batch.cu", "commit.cu",
	"normal.cu", "activation.cu", "norm.cu", "sequence.cu", "combine.cu", "transitions.cu"}

// Source returns the source of all kernels. It is the same on every call.
func Source() string {
	var s strings.Builder
	for _, m := range macros {
		fmt.Fprintf(&s, "#define RT_%s %d\n", m.name, m.value)
	}
	for _, name := range parts {
		text, err := files.ReadFile(name)
		if err != nil {
			panic(err) // the file is embedded
		}
		fmt.Fprintf(&s, "#line 1 \"%s\"\n%s", name, text)
	}
	return s.String()
}

var macros = []struct {
	name  string
	value int
}{
	{"BLOCK_SIZE", nn.BlockSize},
	{"HYPER_RATE", nn.HyperRate},
	{"HYPER_BETA1", nn.HyperBeta1},
	{"HYPER_MIX1", nn.HyperMix1},
	{"HYPER_BETA2", nn.HyperBeta2},
	{"HYPER_MIX2", nn.HyperMix2},
	{"HYPER_EPS", nn.HyperEps},
	{"HYPER_L2", nn.HyperL2},
	{"HYPER_CLIP", nn.HyperClip},
	{"HYPER_DECAY", nn.HyperDecay},
	{"HYPER_AVERAGE", nn.HyperAverage},
	{"HYPER_LEN", nn.HyperLen},
	{"VOTE_LEN", nn.VoteLen},
}

// A Kernel is an entry point of Source.
type Kernel struct {
	Name string
	// Equals names the method of nn/cpu's Backend that the kernel equals. If there is none,
	// it says what the kernel does.
	Equals string
	Shape  Shape
}

// List contains all kernels, in the order of Source.
var List = []Kernel{
	{"zero", "Zero", Elements},
	{"copy", "Copy", Elements},
	{"scale", "Scale", Elements},
	{"axpy", "Axpy", Elements},
	{"rescale", "Rescale", Elements},
	{"relu", "Relu", Elements},
	{"relu_grad", "ReluGrad", Elements},
	{"to_bf16", "no method: rounds to bfloat16", Elements},
	{"from_bf16", "no method: widens bfloat16", Elements},
	{"add_bias", "AddBias", Elements},
	{"add_bias_relu", "AddBias, then Relu", Elements},
	{"sum_rows", "SumRows", Columns},
	{"dropout", "Dropout", Elements}, // an item is four adjacent elements
	{"softmax", "Softmax", Rows},
	{"cross_entropy", "CrossEntropy, the loss", One},
	{"cross_entropy_grad", "CrossEntropy, the gradient", Elements},
	{"smoothed_cross_entropy", "SmoothedCrossEntropy, the loss", One},
	{"smoothed_cross_entropy_grad", "SmoothedCrossEntropy, the gradient", Elements},
	{"correct", "Correct", One},
	{"softmax_cross_entropy", "Softmax, then Correct and CrossEntropy", Rows},
	{"squared_error", "SquaredError, the loss", One},
	{"squared_error_grad", "SquaredError, the gradient", Elements},
	{"huber_error", "HuberError, the loss", One},
	{"huber_error_grad", "HuberError, the gradient", Elements},
	{"absolute_error", "AbsoluteError, the loss", One},
	{"absolute_error_grad", "AbsoluteError, the gradient", Elements},
	{"squared_norm", "SquaredNorm", Blocks},
	{"squared_norm_arena", "SquaredNorm of each parameter", Blocks},
	{"adam", "Adam", Elements},
	{"sgd", "SGD", Elements},
	{"adam_arena", "Adam of each parameter", Parts},
	{"sgd_arena", "SGD of each parameter", Parts},
	{"follow", "Follow", Elements},
	{"conv2d", "Conv2D", Elements},
	{"conv2d_input_grad", "Conv2DInputGrad", Elements},
	{"conv2d_grad_parts", "Conv2DGrad, with conv2d_grad", Taps},
	{"conv2d_grad", "Conv2DGrad, with conv2d_grad_parts", Elements},
	{"max_pool", "MaxPool", Elements},
	{"max_pool_grad", "MaxPoolGrad", Elements},
	{"gather_bytes", "no method: a batch of a data set of bytes", Elements},
	{"gather_words", "no method: a batch of float32 or int32", Elements},
	{"tick", "no method: the end of a step", One},
	{"vote", "no method: this rank's vote for a step", Elements},
	{"commit", "no method: whether all ranks have voted for the step", Elements},
	{"gelu", "Gelu", Elements},
	{"gelu_grad", "GeluGrad", Elements},
	{"maxout", "Maxout", Elements},
	{"maxout_grad", "MaxoutGrad", Elements},
	{"avg_pool", "AvgPool", Elements},
	{"avg_pool_grad", "AvgPoolGrad", Elements},
	{"layer_norm", "LayerNorm", Rows},
	{"layer_norm_grad", "LayerNormGrad, dx", Rows},
	{"layer_norm_weights", "LayerNormGrad, dg and db", Columns},
	{"plane_sums", "ChannelMoments, with channel_sums", Rows},
	{"plane_grads", "BatchNormGrad, with channel_sums and batch_norm_grad", Rows},
	{"channel_sums", "ChannelMoments and BatchNormGrad, with others", Elements},
	{"batch_norm", "BatchNorm", Elements},
	{"batch_norm_grad", "BatchNormGrad, with plane_grads and channel_sums", Elements},
	{"embed", "Embed", Elements},
	{"embed_grad", "EmbedGrad", Elements},
	{"attention_weights", "Attention, with attention", Rows},
	{"attention", "Attention, with attention_weights", Elements},
	{"attention_scores_grad", "AttentionGrad, the scores", Rows},
	{"attention_values_grad", "AttentionGrad, the values", Elements},
	{"attention_grad", "AttentionGrad, the queries and keys", Elements},
	{"add", "Add", Elements},
	{"insert", "Insert", Elements},
	{"extract", "Extract", Elements},
	{"transitions", "no method: the states of nn/ner", Chains},
	{"transitions_grad", "no method: the gradients of nn/ner's lower layer", Elements},
}
