// Package config reads the configuration language of Thinc and spaCy (".cfg"):
// sections of keys whose values are JSON, references between them, and
// blocks that name a registered function and its arguments.
//
//	[training]
//	batch_size = 128
//
//	[model]
//	@layers = "relu_relu_softmax.v1"
//	hidden_width = ${training.batch_size}
//
// The way of a text is: lines to sections (Python's configparser, strict), command-line
// overrides into the raw values, ${...} references, then each value as JSON or
// else as a string. [Parse] does all of that and gives a [Config], an immutable tree
// whose every value knows the line it came from. [Registry.Resolve] then turns
// blocks with a key such as @layers into what the registered function makes of them.
//
// Every mistake is an [*Error]: one line that begins with file:line, says what is
// wrong there and what to do.
package config

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// maxFile is the longest text that is read, in bytes.
const maxFile = 16 << 20

// Config is a parsed configuration: a tree of sections after overrides and
// interpolation. It does not change, and may be used by several goroutines.
type Config struct {
	name     string
	root     *Section
	warnings []string
}

// Parse reads a configuration text. name is what errors call it, usually the
// file's path. Overrides replace or add raw values before references are followed,
// so that ${paths.train} follows an override of paths.train.
func Parse(name, text string, overrides []Override) (*Config, error) {
	if len(text) > maxFile {
		return nil, fail(Pos{Source: name}, "the text is longer than the %d MiB that are read", maxFile>>20)
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
	e := evaluator{doc: doc}
	root, err := e.tree()
	if err != nil {
		return nil, err
	}
	return &Config{name: name, root: root, warnings: doc.warnings}, nil
}

// Load reads a configuration file; see Parse.
func Load(path string, overrides []Override) (*Config, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, &Error{Pos: Pos{Source: path}, Msg: fmt.Sprintf("the config cannot be read: %v", err), Err: err}
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, &Error{Pos: Pos{Source: path}, Msg: fmt.Sprintf("the config cannot be read: %v", err), Err: err}
	}
	return Parse(path, string(text), overrides)
}

// Name returns what the configuration was called when it was parsed.
func (c *Config) Name() string { return c.name }

// Root returns the tree: a section whose entries are the top-level sections.
func (c *Config) Root() *Section { return c.root }

// Warnings returns what is legal but probably not meant, one line each, as single quotes
// around a value.
func (c *Config) Warnings() []string { return append([]string(nil), c.warnings...) }
