// Package config reads the configuration language of Thinc and spaCy (".cfg"): sections
// of keys whose values are JSON, references between values, and blocks that name a
// registered function and its arguments.
//
//	[training]
//	batch_size = 128
//
//	[model]
//	@layers = "relu_relu_softmax.v1"
//	hidden_width = ${training.batch_size}
//
// Parsing takes four steps: split lines into sections (as Python's configparser does in
// strict mode), apply command-line overrides to the raw values, expand ${...} references,
// and read each value as JSON, or as a string if it is not JSON. [Parse] does all of that
// and returns a [Config], an immutable tree in which every value knows its line.
// [Registry.Resolve] then replaces each block that has a key such as @layers with the
// result of the registered function.
//
// Every mistake is an [*Error]: one line that starts with file:line and says what is
// wrong and what to do.
package config

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/ringtrain/ringtrain/collective/errtext"
)

// maxFile is the largest text that Parse accepts, in bytes.
const maxFile = 16 << 20

// Config is a parsed configuration: a tree of sections, after overrides and
// interpolation. It is immutable and safe for concurrent use.
type Config struct {
	name     string
	root     *Section
	warnings []string
	referred map[string]bool // top-level sections that values of others refer to
}

// Parse reads a configuration text. name identifies it in errors, usually the file's
// path. Overrides replace or add raw values before references are expanded, so that
// ${paths.train} uses an override of paths.train.
func Parse(name, text string, overrides []Override) (*Config, error) {
	if len(text) > maxFile {
		return nil, fail(Pos{Source: name}, "the text is longer than the limit of %d MiB; is it a config file?", maxFile>>20)
	}
	if !utf8.ValidString(text) {
		return nil, fail(Pos{Source: name}, "not UTF-8 text; is it a config file?")
	}
	doc, err := lex(name, strings.TrimPrefix(text, "\ufeff"))
	if err != nil {
		return nil, err
	}
	if err := doc.link(); err != nil {
		return nil, err
	}
	for _, o := range overrides {
		if err := doc.override(o); err != nil {
			return nil, err
		}
	}
	e := evaluator{doc: doc, referred: map[string]bool{}}
	root, err := e.tree()
	if err != nil {
		return nil, err
	}
	return &Config{name: name, root: root, warnings: doc.warnings, referred: e.referred}, nil
}

// Load reads a configuration file; see Parse.
func Load(path string, overrides []Override) (*Config, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, &Error{Pos: Pos{Source: path}, Msg: fmt.Sprintf("cannot read the config: %v", errtext.Reason(err)), Err: err}
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, &Error{Pos: Pos{Source: path}, Msg: fmt.Sprintf("cannot read the config: %v", errtext.Reason(err)), Err: err}
	}
	return Parse(path, string(text), overrides)
}

// Name returns the name that was given to Parse.
func (c *Config) Name() string { return c.name }

// Root returns the root of the tree: a section whose entries are the top-level sections.
func (c *Config) Root() *Section { return c.root }

// Warnings returns one line for each thing that is legal but probably a mistake, such as
// a value in single quotes.
func (c *Config) Warnings() []string { return append([]string(nil), c.warnings...) }
