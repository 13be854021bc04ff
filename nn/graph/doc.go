// Package graph writes networks of nn as expression graphs of gorgonia
// (https://gorgonia.org), whose automatic differentiation then gives loss and
// gradients that share no code with nn's own: a second opinion for tests.
package graph
