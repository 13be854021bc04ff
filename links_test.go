package ringtrain

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

var (
	markdownLink = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	codeSpan     = regexp.MustCompile("`[^`]*`")
	notInAnchor  = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
)

// brokenLinks returns the relative links in Markdown files whose target file or heading
// does not exist.
func brokenLinks(fsys fs.FS) ([]string, error) {
	texts := map[string]string{}
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && p != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "runs"):
			return fs.SkipDir
		case path.Ext(p) == ".md":
			text, err := fs.ReadFile(fsys, p)
			texts[p] = string(text)
			return err
		}
		return nil
	})
	var broken []string
	for from, text := range texts {
		for i, line := range strings.Split(text, "\n") {
			if strings.HasPrefix(line, "    ") { // code
				continue
			}
			for _, match := range markdownLink.FindAllStringSubmatch(codeSpan.ReplaceAllString(line, ""), -1) {
				if !resolves(fsys, texts, from, match[1]) {
					broken = append(broken, fmt.Sprintf("%s:%d: %s", from, i+1, match[1]))
				}
			}
		}
	}
	return broken, err
}

func resolves(fsys fs.FS, texts map[string]string, from, link string) bool {
	if strings.Contains(link, "://") {
		return true
	}
	target, anchor, _ := strings.Cut(link, "#")
	if target = path.Join(path.Dir(from), target); strings.HasPrefix(link, "#") {
		target = from
	}
	if _, err := fs.Stat(fsys, target); err != nil {
		return false
	}
	return anchor == "" || hasHeading(texts[target], anchor)
}

// hasHeading reports whether GitHub gives a heading in text this anchor.
func hasHeading(text, anchor string) bool {
	for line := range strings.SplitSeq(text, "\n") {
		heading := strings.TrimLeft(line, "#")
		if heading == line {
			continue
		}
		name := notInAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), "")
		if strings.ReplaceAll(name, " ", "-") == anchor {
			return true
		}
	}
	return false
}

// Links between documents lead to existing files and headings.
func TestLinks(t *testing.T) {
	broken, err := brokenLinks(os.DirFS("."))
	require.NoError(t, err)
	require.Empty(t, broken, "link to an existing file and heading")
}

func TestLinksFindsBroken(t *testing.T) {
	broken, err := brokenLinks(fstest.MapFS{
		"README.md": {Data: []byte("[a](docs/a.md#two-words-and-c)\n[b](docs/b.md)\n[web](https://x.org)\n[up](#a)\n`f[T](x)`\n    [code](x)\n# A\n")},
		"docs/a.md": {Data: []byte("## Two words, and `c`\n[r](../README.md#b)\n[s](../README.md#a)\n![p](p.svg)\n")},
	})
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"README.md:2: docs/b.md", "docs/a.md:2: ../README.md#b", "docs/a.md:4: p.svg"}, broken)
}
