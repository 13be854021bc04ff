package launch

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// Tag is the identity in some 40 letters, digits and hyphens, for the names of
// files that must say whose they are.
func (id Identity) Tag() string {
	return fmt.Sprintf("%s-%s-%s-%d-%x", brief(id.Host+"/"+id.Machine), brief(id.Boot), brief(id.Space), id.PID, id.Start)
}

// brief stands for a text that may be long, or hold anything.
func brief(text string) string {
	if text == "" {
		return "0"
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}

// TagState is what can be said from here about the process that a Tag is of.
func TagState(tag string) State { return judgeTag(tag, Self(), inspect) }

// judgeTag is TagState as seen by self.
func judgeTag(tag string, self Identity, inspect func(pid int) (start uint64, s State)) State {
	parts := strings.Split(tag, "-")
	if len(parts) != 5 || parts[0] != brief(self.Host+"/"+self.Machine) {
		return Unknown
	}
	pid, noPID := strconv.Atoi(parts[3])
	start, noStart := strconv.ParseUint(parts[4], 16, 64)
	if noPID != nil || noStart != nil {
		return Unknown
	}
	id := Identity{Host: self.Host, Machine: self.Machine, Boot: self.Boot, Space: self.Space, PID: pid, Start: start}
	if parts[1] != brief(self.Boot) {
		id.Boot = parts[1]
	}
	if parts[2] != brief(self.Space) {
		id.Space = parts[2]
	}
	return id.judge(self, inspect)
}
