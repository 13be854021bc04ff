package membership

import (
	"slices"
	"strings"
	"syscall"
)

// A Seed is an address that could not be joined.
type Seed struct {
	Addr     string // host:port, as Config.Join has it
	Problem  string // what came back, such as "refused the connection"
	Rejected bool   // somebody answered there, whom this process cannot join
	Refused  bool   // nobody listens at any address of it
}

// String is one clause, such as "10.0.0.1:7946 refused the connection".
func (s Seed) String() string { return s.Addr + " " + s.Problem }

// refusal is the Problem of a seed where nobody listens.
const refusal = "refused the connection"

// sameKey is what to do about keys that differ.
const sameKey = ": give both the same key file"

// A translation says in a user's words what a text in an error means.
type translation struct{ theirs, ours string }

// keyTrouble is what memberlist says where the keys of two processes differ, to
// the one that has tried to join.
func keyTrouble() []translation {
	return []translation{
		{"no installed keys could decrypt", "has another key than this process"},
		{"remote state is encrypted and encryption is not", "has a key, and this process has none"},
		{"encryption is configured but remote state is not encrypted", "has no key, and this process has one"},
	}
}

// netTrouble is what the system says where a seed cannot be reached.
func netTrouble() []translation {
	return []translation{
		{syscall.ECONNREFUSED.Error(), refusal},
		{"i/o timeout", "did not answer"},
		{"invalid msgType", "answered, but is no ringtrain process"},
		{"deadline exceeded", "did not answer"},
		{syscall.ENETUNREACH.Error(), "cannot be reached (" + syscall.ENETUNREACH.Error() + ")"},
		{syscall.EHOSTUNREACH.Error(), "cannot be reached (" + syscall.EHOSTUNREACH.Error() + ")"},
	}
}

// explain makes a clause of memberlist's error, and says what its bare EOF
// means: the seed has hung up on us. rejected says that trying again cannot help.
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
		return "hung up: does it use another cluster name, or is it no ringtrain process? (" + text + ")", false
	}
	return "cannot be joined: " + text, false
}
