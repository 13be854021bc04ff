package membership

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A visitor is a process that tried to join this one and was turned away.
type visitor struct {
	from    netip.Addr
	problem string // why it was turned away
	key     bool   // its key, or that it has none, is the problem
	keyless bool   // it has a key, and this process none: they can never join
}

// String returns one clause.
func (v visitor) String() string { return v.from.String() + " " + v.problem }

// visitTrouble has memberlist's errors on the side that is joined if the keys of
// two processes differ.
func visitTrouble() []translation {
	return []translation{
		{"no installed keys could decrypt", "tried to join with a different key"},
		{"encryption is configured but remote state is not encrypted", "tried to join without a key"},
		{"remote state is encrypted and encryption is not", "has a key, and this process has none"},
	}
}

// plausible reports whether a stranger's label may be the name of a cluster. An
// empty label, or random bytes, do not come from a ringtrain process.
func plausible(cluster string) bool {
	return cluster != "" && utf8.ValidString(cluster) && !strings.ContainsFunc(cluster, func(r rune) bool { return !unicode.IsPrint(r) })
}

// readVisitor finds a visitor in a line of memberlist's log, the only place where
// memberlist reports one.
func readVisitor(line string) (visitor, bool) {
	i := strings.LastIndex(line, " from=") // the last, because the visitor may have sent the rest
	if i < 0 {
		return visitor{}, false
	}
	text := line[:i]
	at, err := netip.ParseAddrPort(strings.TrimSpace(line[i+len(" from="):]))
	if err != nil {
		return visitor{}, false
	}
	v := visitor{from: at.Addr().Unmap()}
	if _, label, ok := strings.Cut(text, "discarding stream with unacceptable label "); ok {
		cluster, err := strconv.Unquote(strings.TrimSuffix(label, ":"))
		v.problem = "looks for another cluster, " + fmt.Sprintf("%.60q", cluster) + ": give all the same --cluster"
		return v, err == nil && plausible(cluster)
	}
	if !strings.Contains(text, "failed to receive: ") {
		return visitor{}, false
	}
	for i, t := range visitTrouble() {
		if strings.Contains(text, t.theirs) {
			v.problem, v.key, v.keyless = t.ours+sameKey, true, i == 2
			return v, true
		}
	}
	return visitor{}, false
}
