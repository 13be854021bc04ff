package membership

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A visitor is a process that has tried to join this one in vain.
type visitor struct {
	from    netip.Addr
	problem string // with which it was turned away
	keyless bool   // it has a key, and this process none: they will never meet
}

// String is one clause.
func (v visitor) String() string { return v.from.String() + " " + v.problem }

// visitTrouble is what memberlist says where the keys of two processes differ, to
// the one that was to be joined.
func visitTrouble() []translation {
	return []translation{
		{"no installed keys could decrypt", "tried to join with another key"},
		{"encryption is configured but remote state is not encrypted", "tried to join without a key"},
		{"remote state is encrypted and encryption is not", "has a key, and this process has none"},
	}
}

// plausible reports whether a label that a stranger sent may be the name of a
// cluster. Without any it is no ringtrain process, and noise is none either.
func plausible(cluster string) bool {
	return cluster != "" && utf8.ValidString(cluster) && !strings.ContainsFunc(cluster, func(r rune) bool { return !unicode.IsPrint(r) })
}

// readVisitor finds a visitor in a line of memberlist's log, which is the only
// place where it tells of one.
func readVisitor(line string) (visitor, bool) {
	i := strings.LastIndex(line, " from=") // what is before it may be the visitor's own words
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
		v.problem = "looks for cluster " + fmt.Sprintf("%.60q", cluster) + ", which is another one: give all the same --cluster"
		return v, err == nil && plausible(cluster)
	}
	if !strings.Contains(text, "failed to receive: ") {
		return visitor{}, false
	}
	for i, t := range visitTrouble() {
		if strings.Contains(text, t.theirs) {
			v.problem, v.keyless = t.ours+sameKey, i == 2
			return v, true
		}
	}
	return visitor{}, false
}
