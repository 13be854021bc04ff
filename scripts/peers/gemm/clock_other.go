//go:build !linux

package main

import "time"

// clock returns the time since the program started.
func clock() time.Duration { return time.Since(started) }

var started = time.Now()
