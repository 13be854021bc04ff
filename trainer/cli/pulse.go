package cli

import "time"

// A pulse is what a worker knows about its own progress.
type pulse struct{}

func (p *pulse) retrying(time.Time) {}
func (p *pulse) wrote(int)          {}
