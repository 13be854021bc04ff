package ringtrain

import (
	"strings"
	"unicode/utf8"
)

const (
	maxReadmeLines = 120
	maxReadmeWidth = 100
)

func checkReadme(t *tree) []violation {
	const fix = "move what first-time readers do not need to a page in docs, and link to it"
	if t.readme == "" {
		return []violation{violationAt("README.md", 1, "write one: what it is, install, first run", "missing")}
	}
	var found []violation
	lines := strings.Split(strings.TrimSuffix(t.readme, "\n"), "\n")
	if len(lines) > maxReadmeLines {
		found = append(found, violationAt("README.md", maxReadmeLines+1, fix, "%d lines, more than %d", len(lines), maxReadmeLines))
	}
	for i, line := range lines {
		if width := utf8.RuneCountInString(line); width > maxReadmeWidth {
			found = append(found, violationAt("README.md", i+1, "break the line", "%d characters, more than %d", width, maxReadmeWidth))
		}
	}
	return found
}
