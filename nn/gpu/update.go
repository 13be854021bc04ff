package gpu

import (
	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/nn"
)

// Scale implements nn.Update.
func (b *Backend) Scale(y nn.Buffer, a float32) {
	b.launch("scale", y.Len(), b.at(y), cuda.Float32(a), count(y.Len()))
}

// Axpy implements nn.Update.
func (b *Backend) Axpy(y nn.Buffer, a float32, x nn.Buffer) {
	need("Axpy", x.Len() == y.Len())
	b.launch("axpy", y.Len(), b.at(y), cuda.Float32(a), b.at(x), count(y.Len()))
}

// SquaredNorm implements nn.Update.
func (b *Backend) SquaredNorm(sums, g, w, hyper nn.Buffer) {
	need("SquaredNorm", sums.Len() == nn.Blocks(g.Len()) && w.Len() == g.Len() && hyper.Len() == nn.HyperLen)
	b.launch("squared_norm", sums.Len(), b.at(sums), b.at(g), b.at(w), b.at(hyper), count(g.Len()))
}

// Adam implements nn.Update.
func (b *Backend) Adam(w, g, m, v, average, norms, hyper nn.Buffer) {
	n := w.Len()
	need("Adam", g.Len() == n && m.Len() == n && v.Len() == n && (average.Len() == 0 || average.Len() == n) && hyper.Len() == nn.HyperLen)
	b.launch("adam", n, b.at(w), b.at(g), b.at(m), b.at(v), b.at(average), b.at(norms), number(norms.Len()), b.at(hyper), count(n), b.stop.Arg())
}

// SGD implements nn.Update.
func (b *Backend) SGD(w, g, average, norms, hyper nn.Buffer) {
	n := w.Len()
	need("SGD", g.Len() == n && (average.Len() == 0 || average.Len() == n) && hyper.Len() == nn.HyperLen)
	b.launch("sgd", n, b.at(w), b.at(g), b.at(average), b.at(norms), number(norms.Len()), b.at(hyper), count(n), b.stop.Arg())
}
