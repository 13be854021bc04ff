package cli

import "strings"

// either joins alternatives: "a", "a or b", "a, b or c".
func either(all []string) string {
	n := len(all) - 1
	if n < 1 {
		return strings.Join(all, "")
	}
	return strings.Join(all[:n], ", ") + " or " + all[n]
}
