// Package graph builds networks of nn as expression graphs of gorgonia
// (https://gorgonia.org). Gorgonia's automatic differentiation then computes loss and
// gradients without any of nn's code, as an independent check for tests.
package graph
