// Package status finds jobs that run on this machine, reports what a job is doing (its
// ranks, the call that each of them is in, and which rank waits for which), and switches a
// job to another strategy.
package status
