// Package trace makes what a job does visible: flight records as files and over
// the network, who is late and who waits for whom, Chrome traces, and
// Prometheus metrics. It observes groups and training; nothing depends on it.
package trace
