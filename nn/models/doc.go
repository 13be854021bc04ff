// Package models builds named architectures from nn's exported API. Each is a
// function of its hyper-parameters; widths of input and output come from the
// data when the model is built.
package models
