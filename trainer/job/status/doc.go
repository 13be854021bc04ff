// Package status finds the jobs that run on this machine, and says what a job does:
// who is in it, which call each rank is in, and who waits for whom.
package status
