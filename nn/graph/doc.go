// Package graph joins nn and gorgonia (https://gorgonia.org).
//
// A Layer makes a graph of gorgonia a layer of nn, so that ringtrain trains it like any
// other. A Network is the opposite, a network of nn as a graph of gorgonia: the automatic
// differentiation of gorgonia computes its loss and gradients without any of nn's code, as
// an independent check for tests.
package graph
