package catalog

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer/config"
)

// Locate returns err as a *config.Error if it is an *nn.LayerError about a network of
// cfg: with the line and the path of the layer's block, and with the names of arguments
// instead of those of Go. Otherwise it returns err.
func (c *Catalog) Locate(cfg *config.Config, err error) error {
	var mistake *nn.LayerError
	var located *config.Error
	e, there := cfg.Entry("model")
	model, isSection := e.Value.(*config.Section)
	if errors.As(err, &located) || !errors.As(err, &mistake) || !there || !isSection {
		return err
	}
	b := c.find(block{path: "model", section: model}, mistake.Path)
	parts := c.parts(b)
	name, pos := b.function()
	var key string
	text := goWord.ReplaceAllStringFunc(mistake.Msg, func(word string) string {
		switch i, isPart := element(word); {
		case isPart && i < len(parts):
			return parts[i].path
		case isPart:
			return word
		case strings.HasPrefix(word, "*"):
			return name
		}
		if e, set := b.section.Get(inConfig[word]); set && key == "" {
			key, pos = "."+e.Key, e.Pos
		}
		return inConfig[word]
	})
	return &config.Error{Pos: pos, Msg: fmt.Sprintf("%s%s: %s: %s", b.path, key, name, text), Err: err}
}

// inConfig has the names in configs of what errors of nn name.
var inConfig = map[string]string{
	"Out": "nO", "In": "nI", "Rows": "nV", "Pieces": "nP", "Heads": "heads", "Shape": "shape",
	"Size": "size", "Stride": "stride", "Padding": "padding", "Channels": "channels", "Height": "height", "Width": "width",
	"Eps": "eps", "Column": "column", "Columns": "columns", "Momentum": "momentum", "Mean": "mean", "Deviation": "deviation",
	"Embed": "Embed.v1", "HashEmbed": "HashEmbed.v1", "ExpandWindow": "expand_window.v1", "Padded": "with_array.v1 with pad", "EachPosition": "with_array.v1", "Linear": "Linear.v1", "Softmax": "Softmax.v1", "nn.Images": "Images.v1", "nn.Columns": "Columns.v1",
}

// goWord matches the keys of inConfig, types of layers, and layers of a combinator.
var goWord = regexp.MustCompile(`\*\w+\.\w+|\blayers\.\d+|\b(` + strings.ReplaceAll(strings.Join(slices.Sorted(maps.Keys(inConfig)), "|"), ".", `\.`) + `)\b`)

// A block is a section that names a layer.
type block struct {
	path    string
	section *config.Section
}

// function returns the name of the function, and the line that names it.
func (b block) function() (string, config.Pos) {
	for _, registry := range []string{"@layers", "@architectures"} {
		if e, ok := b.section.Get(registry); ok {
			name, _ := e.Value.(string)
			return name, e.Pos
		}
	}
	return "", b.section.Pos()
}

// find returns the block of the layer with a scope, or of the innermost layer around it
// that has one.
func (c *Catalog) find(b block, scope string) block {
	for {
		first, rest, _ := strings.Cut(scope, ".")
		index, rest, _ := strings.Cut(rest, ".")
		i, ok := element(first + "." + index)
		parts := c.parts(b)
		if !ok || len(parts) == 0 {
			return b
		}
		if c.clones(b) {
			i = 0
		}
		if i >= len(parts) {
			return b
		}
		b, scope = parts[i], rest
	}
}

// element returns i of "layers.i".
func element(scope string) (i int, ok bool) {
	index, ok := strings.CutPrefix(scope, "layers.")
	i, err := strconv.Atoi(index)
	return i, ok && err == nil && i >= 0
}

// parts returns the blocks of the layers that a combinator gets, in its order: that of its
// parameters.
func (c *Catalog) parts(b block) []block {
	name, _ := b.function()
	params, _ := c.Registry.Params("layers", name)
	var parts []block
	add := func(path string, v any) {
		if s, ok := v.(*config.Section); ok {
			if _, ok := s.Get("@layers"); ok {
				parts = append(parts, block{path: path, section: s})
			}
		}
	}
	for _, p := range params {
		if !p.Variadic {
			e, _ := b.section.Get(p.Name)
			add(b.path+"."+p.Name, e.Value)
			continue
		}
		e, _ := b.section.Get("*")
		switch v := e.Value.(type) {
		case []any:
			for i, item := range v {
				add(fmt.Sprintf("%s.*.%d", b.path, i), item)
			}
		case *config.Section:
			for _, item := range v.Entries() {
				add(b.path+".*."+item.Key, item.Value)
			}
		}
	}
	return parts
}

// clones reports whether all layers of a combinator are made from one block.
func (c *Catalog) clones(b block) bool {
	name, _ := b.function()
	params, _ := c.Registry.Params("layers", name)
	for _, p := range params {
		if p.Lazy {
			return true
		}
	}
	return false
}
