package collective_test

import (
	"context"
	"testing"

	"github.com/ringtrain/ringtrain/collective"
)

// idle is a transport whose calls are over at once.
type idle struct{ collective.Transport }

func (idle) AllReduce(*collective.Operation) error { return nil }
func (idle) Exchange(*collective.Operation) error  { return nil }
func (idle) Barrier(*collective.Operation) error   { return nil }
func (idle) Abilities() collective.Abilities {
	return collective.Abilities{Post: idle{}, Reduce: idle{}, Show: func(*collective.Operation) {}}
}
func (idle) Post(int, *collective.Header, [][]byte) error { return nil }
func (idle) Flush(context.Context) error                  { return nil }
func (idle) Abort(*collective.RankError)                  {}
func (idle) Close() error                                 { return nil }

// What a Group itself adds to the time of a call.
func BenchmarkGroup(b *testing.B) {
	v := collective.View{Members: make([]collective.Member, 2)}
	g := collective.NewGroup(v, collective.OverTransport(v, idle{}), collective.Options{})
	defer g.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	x := []float32{1}
	b.ReportAllocs()
	for b.Loop() {
		if err := collective.AllReduce(ctx, g, x, collective.Sum); err != nil {
			b.Fatal(err)
		}
	}
}
