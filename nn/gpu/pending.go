package gpu

import (
	"fmt"

	"github.com/ringtrain/ringtrain/nn"
)

// pending records that a method has no kernel yet.
func (b *Backend) pending(method string) {
	b.note(method, fmt.Errorf("%s has no kernel on GPUs yet; train this network with --device cpu", method))
}

// Gelu is not there yet.
func (b *Backend) Gelu(_, _ nn.Buffer) { b.pending("Gelu") }

// GeluGrad is not there yet.
func (b *Backend) GeluGrad(_, _, _ nn.Buffer) { b.pending("GeluGrad") }

// Maxout is not there yet.
func (b *Backend) Maxout(_, _ nn.Buffer, _ int) { b.pending("Maxout") }

// MaxoutGrad is not there yet.
func (b *Backend) MaxoutGrad(_, _, _ nn.Buffer, _ int) { b.pending("MaxoutGrad") }

// LayerNorm is not there yet.
func (b *Backend) LayerNorm(_, _, _, _, _ nn.Buffer, _ float32) { b.pending("LayerNorm") }

// LayerNormGrad is not there yet.
func (b *Backend) LayerNormGrad(_, _, _, _, _, _, _ nn.Buffer) { b.pending("LayerNormGrad") }

// ChannelMoments is not there yet.
func (b *Backend) ChannelMoments(_ nn.Moments, _ nn.Buffer) { b.pending("ChannelMoments") }

// BatchNorm is not there yet.
func (b *Backend) BatchNorm(_, _, _, _ nn.Buffer, _ nn.Moments) { b.pending("BatchNorm") }

// BatchNormGrad is not there yet.
func (b *Backend) BatchNormGrad(_, _, _, _, _, _ nn.Buffer, _ nn.Moments) { b.pending("BatchNormGrad") }

// Embed is not there yet.
func (b *Backend) Embed(_, _, _ nn.Buffer, _ int) { b.pending("Embed") }

// EmbedGrad is not there yet.
func (b *Backend) EmbedGrad(_, _, _ nn.Buffer, _ int) { b.pending("EmbedGrad") }

// Attention is not there yet.
func (b *Backend) Attention(_, _, _ nn.Buffer, _ nn.Heads) { b.pending("Attention") }

// AttentionGrad is not there yet.
func (b *Backend) AttentionGrad(_, _, _, _ nn.Buffer, _ nn.Heads) { b.pending("AttentionGrad") }

// Add is not there yet.
func (b *Backend) Add(_, _, _ nn.Buffer) { b.pending("Add") }

// Insert is not there yet.
func (b *Backend) Insert(_, _ nn.Buffer, _, _, _ int) { b.pending("Insert") }

// Extract is not there yet.
func (b *Backend) Extract(_, _ nn.Buffer, _, _, _ int) { b.pending("Extract") }

// AvgPool is not there yet.
func (b *Backend) AvgPool(_, _ nn.Buffer, _ nn.Window) { b.pending("AvgPool") }

// AvgPoolGrad is not there yet.
func (b *Backend) AvgPoolGrad(_, _ nn.Buffer, _ nn.Window) { b.pending("AvgPoolGrad") }
