// Package data holds the datasets that classifiers train on and the order in
// which their rows are visited.
//
// A [Set] is a training and a test part, each an [Images]: bytes in memory, one
// label a row. Sets come from IDX files (the format of MNIST and its
// relatives, see [OpenMNIST]) or from [Digits], which draws hand-written-like
// digits without any licence or download. [Sampler] says which rows a rank
// visits at a step, and is a pure function of (seed, step, rank, size), so
// every rank finds its own rows without a message. [Images.Gather] turns rows
// into a batch.
//
// The sets, the order and Gather know nothing of models: their batches are plain
// []float32 and []int32. [Feed] and [Part] put those into the memory of an
// nn.Backend. Nothing here talks to another rank.
package data
