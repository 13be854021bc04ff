// Package status finds jobs that run on this machine, and reports what a job is doing:
// its ranks, the call that each of them is in, and who waits for whom.
package status
