// Package trace makes the activity of a job visible: flight records as files and over the
// network, which rank is late and which waits for which, Chrome traces, and Prometheus
// metrics. It observes groups and training; neither depends on it.
package trace
