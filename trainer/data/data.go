// Package data reads and generates the rows that models train on, and defines the order
// in which they are visited.
//
// A [Set] has a training and a test part. Each is an [Images]: bytes in memory, with one
// label per row. Sets come from IDX files (the format of MNIST and its relatives, see
// [OpenMNIST]) or from [Digits], which generates images like handwritten digits without
// any download or licence. A [Table] comes from a CSV file, characters and their
// [Vocabulary] from a text, and documents with entities from a corpus.
//
// [Sampler] determines which rows a rank visits in a step. It is a pure function of (seed,
// step, rank, size), so every rank finds its own rows without communication.
// [Images.Gather] turns rows into a batch.
//
// Sets, Sampler and Gather know nothing about models: their batches are plain []float32
// and []int32. [Feed] and [Part] copy those into the memory of an nn.Backend. Nothing in
// this package communicates with other ranks.
package data
