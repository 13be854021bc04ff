//go:build !race

package collectivetest

const raced = false
