// Package models builds named architectures from nn's exported API. Each is a
// function of its hyper-parameters. Input and output widths come from the data
// when the model is built.
package models
