// Package ringtrain holds the rules of this tree, as tests.
//
// There is no code here. The packages live in the directories below, and
// docs/architecture.md is the map. What the map says about who may import whom,
// how long a file may be or where a program may end is checked by the tests of
// this directory: they parse every Go file themselves, whatever its build tags,
// so that a file for a system or a device nobody has at hand obeys too.
//
// Each rule is a function from a parsed tree to its breaches (rules_test.go
// lists them). A breach is printed with the place, the rule, and what to do.
package ringtrain
