package collective

import "fmt"

// Order is the order in which a Group's reductions combine their operands.
type Order uint8

// The orders.
const (
	// RingOrder is the order that the package comment defines. The bits of a
	// result depend only on the operands and the number of ranks.
	RingOrder Order = iota
	// AnyOrder lets AllReduce use algorithms that fold in other orders if they
	// are faster. All ranks still get the same bits, and so does another run
	// with the same plans. Another transport, layout of hosts, message size or
	// cut of an arena may change the bits.
	AnyOrder
)

// String returns the order as flags spell it.
func (o Order) String() string {
	switch o {
	case RingOrder:
		return "ring"
	case AnyOrder:
		return "any"
	}
	return fmt.Sprintf("order(%d)", uint8(o))
}

// ParseOrder reads what String writes.
func ParseOrder(s string) (Order, error) {
	for o := RingOrder; o <= AnyOrder; o++ {
		if s == o.String() {
			return o, nil
		}
	}
	return 0, fmt.Errorf("order must be %v or %v, not %q", RingOrder, AnyOrder, s)
}
