// Package calibration chooses what depends on the processor, the kernel and the
// hypervisor: how ranks that share memory move data, and how long they wait before
// they sleep.
//
// The ranks of a host make trial calls when they form their first group. A [Search]
// says which calls, and turns their times into [Choices]. It is a state machine
// without clocks, and all ranks feed theirs with the same times, so all make the same
// choices. A [Store] keeps them in a file for the next jobs.
//
// Choices change how long calls take. They never change bits.
package calibration
