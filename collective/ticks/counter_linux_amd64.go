//go:build !noasm

package ticks

import (
	"os"
	"strings"
	"sync"
)

// counter returns the processor's time stamp counter.
func counter() Ticks

// amd reports whether the processor is one of AMD's.
func amd() bool

// useCounter reports whether Clocks use the counter. Linux stops keeping time by it when
// it finds that the counter is not steady.
var useCounter = sync.OnceValue(func() bool {
	if !amd() {
		return false
	}
	source, err := os.ReadFile("/sys/devices/system/clocksource/clocksource0/current_clocksource")
	return err == nil && strings.TrimSpace(string(source)) == "tsc"
})
