package job

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/config"
)

// keyPaths returns all keys of the table, with their sections.
func keyPaths() []string {
	var out []string
	for _, c := range chapters {
		for _, k := range c.Keys {
			out = append(out, c.Section+"."+k.Name)
		}
	}
	return out
}

// Every key that the sources name is in the table, and every key in the table is read.
func TestKeysThatAreReadAreInTheTable(t *testing.T) {
	key := regexp.MustCompile(`^(training|evaluation|ray)\.\w+$`)
	named := map[string]bool{}
	sources, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), source, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil && key.MatchString(text) {
					named[text] = true
				}
			}
			return true
		})
	}
	for name := range named {
		require.Contains(t, keyPaths(), name, "it is read but missing in chapters (chapters.go)")
	}
	c := catalog.New()
	for _, path := range keyPaths() {
		section, name, _ := strings.Cut(path, ".")
		cfg, err := config.Parse("test.cfg", fmt.Sprintf("[%s]\n%s = [\"of the wrong type\"]\n", section, name), nil)
		require.NoError(t, err)
		s := &Training{Config: cfg}
		require.ErrorContains(t, s.read(Manual(c)), path, "it is in chapters (chapters.go) but never read")
	}
	for _, chapter := range chapters {
		require.True(t, chapter.Calls == "" || slices.Contains(c.Registry.Registries(), chapter.Calls), chapter.Section)
	}
}

// docs/formats.md contains the tables that this test prints when it fails.
func TestDocumentedKeys(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "formats.md"))
	require.NoError(t, err)
	r := catalog.New().Registry
	keys := "| key | default | meaning |\n|---|---|---|\n"
	for _, c := range chapters {
		for _, k := range c.Keys {
			byDefault := k.Absent
			if byDefault == "" {
				byDefault = fmt.Sprintf("`%v`", k.Default)
			}
			meaning := k.Doc
			if k.Form != "" {
				meaning += ": " + k.Form
			}
			if k.Option != "" {
				meaning += "; `" + k.Option + "` wins"
			}
			keys += fmt.Sprintf("| `%s.%s` | %s | %s |\n", c.Section, k.Name, byDefault, meaning)
		}
		if c.Calls != "" {
			keys += fmt.Sprintf("| `%s.@%s` | %s| %s: `%s` |\n", c.Section, c.Calls, absent(c), c.Doc, strings.Join(r.Names(c.Calls), "`, `"))
		}
	}
	require.True(t, strings.Contains(string(text), keys), "docs/formats.md lacks this table:\n%s", keys)
	functions := "| function | arguments, with their defaults | what it is |\n|---|---|---|\n"
	for _, registry := range r.Registries() {
		for _, name := range r.Names(registry) {
			params, _ := r.Params(registry, name)
			var arguments []string
			for _, p := range params {
				argument := "`" + p.Key() + "`"
				switch {
				case p.Required || p.Variadic:
				case p.Default == nil:
					argument += " null"
				default:
					argument += fmt.Sprintf(" %v", p.Default)
				}
				arguments = append(arguments, argument)
			}
			functions += fmt.Sprintf("| `@%s = \"%s\"` | %s | %s |\n", registry, name, strings.Join(arguments, ", "), r.Doc(registry, name))
		}
	}
	require.True(t, strings.Contains(string(text), functions), "docs/formats.md lacks this table:\n%s", functions)
}

// absent is what a table says of a section that is not there.
func absent(c config.Chapter) string {
	if c.Absent == "" {
		return ""
	}
	return c.Absent + " "
}
