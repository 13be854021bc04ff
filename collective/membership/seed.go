package membership

import (
	"slices"
	"strings"
	"syscall"
)

// A Seed is an address that could not be joined.
type Seed struct {
	Addr     string // host:port, as Config.Join has it
	Problem  string // such as "refused the connection"
	Rejected bool   // a process answered that this one cannot join
	Refused  bool   // all its addresses refuse connections
}

// String returns one clause, such as "10.0.0.1:7946 refused the connection".
func (s Seed) String() string { return s.Addr + " " + s.Problem }

// refusal is the Problem of a seed that refuses connections.
const refusal = "refused the connection"

// sameKey says what to do about different keys.
const sameKey = ": give both the same key file"

// A translation says what a text in an error means to a user.
type translation struct{ theirs, ours string }

// keyTrouble has memberlist's errors on the side that joins if the keys of two
// processes differ.
func keyTrouble() []translation {
	return []translation{
		{"no installed keys could decrypt", "has a different key"},
		{"remote state is encrypted and encryption is not", "has a key, and this process has none"},
		{"encryption is configured but remote state is not encrypted", "has no key, and this process has one"},
	}
}

// netTrouble has the errors of a seed that cannot be reached.
func netTrouble() []translation {
	return []translation{
		{syscall.ECONNREFUSED.Error(), refusal},
		{"i/o timeout", "did not answer"},
		{"invalid msgType", "answered, but is not a ringtrain process"},
		{"deadline exceeded", "did not answer"},
		{syscall.ENETUNREACH.Error(), "cannot be reached (" + syscall.ENETUNREACH.Error() + ")"},
		{syscall.EHOSTUNREACH.Error(), "cannot be reached (" + syscall.EHOSTUNREACH.Error() + ")"},
	}
}

// explain turns memberlist's error into a clause. A bare EOF means that the seed
// hung up. rejected says that trying again cannot help.
func explain(err error) (problem string, rejected bool) {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if _, rest, ok := strings.Cut(text, "failed to join "); ok {
		if _, cause, ok := strings.Cut(rest, ": "); ok {
			text = cause
		}
	}
	in := func(t translation) bool { return strings.Contains(text, t.theirs) }
	if all := keyTrouble(); slices.ContainsFunc(all, in) {
		return all[slices.IndexFunc(all, in)].ours + sameKey, true
	}
	if all := netTrouble(); slices.ContainsFunc(all, in) {
		return all[slices.IndexFunc(all, in)].ours, false
	}
	if strings.HasSuffix(text, "EOF") || strings.Contains(text, "connection reset") {
		return "hung up: does it use another cluster name, or is it not a ringtrain process? (" + text + ")", false
	}
	return "cannot be joined: " + text, false
}
