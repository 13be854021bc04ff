package launch

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// Tag returns the identity in about 40 letters, digits and hyphens, for file names that
// must say which process they belong to.
func (id Identity) Tag() string {
	return fmt.Sprintf("%s-%s-%s-%d-%x", shortHash(id.Host+"/"+id.Machine), shortHash(id.Boot), shortHash(id.Space), id.PID, id.Start)
}

// shortHash returns a short stand-in for any text.
func shortHash(text string) string {
	if text == "" {
		return "0"
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}

// TagState returns the state of the process that a Tag identifies.
func TagState(tag string) State { return judgeTag(tag, Self(), inspect) }

// judgeTag is TagState as seen by self.
func judgeTag(tag string, self Identity, inspect func(pid int) (start uint64, s State)) State {
	parts := strings.Split(tag, "-")
	if len(parts) != 5 || parts[0] != shortHash(self.Host+"/"+self.Machine) {
		return Unknown
	}
	pid, noPID := strconv.Atoi(parts[3])
	start, noStart := strconv.ParseUint(parts[4], 16, 64)
	if noPID != nil || noStart != nil {
		return Unknown
	}
	id := Identity{Host: self.Host, Machine: self.Machine, Boot: self.Boot, Space: self.Space, PID: pid, Start: start}
	if parts[1] != shortHash(self.Boot) {
		id.Boot = parts[1]
	}
	if parts[2] != shortHash(self.Space) {
		id.Space = parts[2]
	}
	return id.judge(self, inspect)
}
