package job

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/catalog"
)

// alike returns the settings that must be equal on all workers of a job, except those that
// the trainer compares itself.
func (s *Training) alike(rows catalog.Rows, blas, plan string) []trainer.Setting {
	order := s.Spec.Order.HostOrder().String()
	if s.Placement.OnGPU() && !s.Spec.Order.Given {
		order = "not given" // on a GPU this allows other orders than ring order
	}
	settings := []trainer.Setting{s.trained()}
	for _, option := range s.Dataset.Info().Options.List() {
		if option.Name != catalog.OptionTest { // a path, which may differ between machines
			settings = append(settings, trainer.Setting{Name: "--" + option.Name, Value: cmp.Or(option.Value, "not given")})
		}
	}
	return append(settings, []trainer.Setting{
		{Name: "the data", Value: rows.Sum()},
		{Name: "--batch", Value: strconv.Itoa(s.Batch)},
		{Name: "--compress", Value: s.Compression.String()},
		{Name: "--switch", Value: cmp.Or(s.Spec.Gradients.Switch, "not given")},
		{Name: "--faithful-accumulate", Value: strconv.FormatBool(s.Spec.Gradients.Faithful)},
		{Name: "the library for matrix products (unset " + cpu.EnvOpenBLAS + " to use ringtrain's own everywhere)", Value: blas},
		{Name: "--tf32", Value: strconv.FormatBool(s.Spec.Products.TF32)},
		{Name: "--bf16", Value: strconv.FormatBool(s.Spec.Products.BF16)},
		{Name: "--order", Value: order},
		{Name: "the plan of the allreduce", Value: plan, Derived: true},
	}...)
}

// trained returns the config with its defaults as a Setting whose parts are its keys. It
// leaves out [ray], which may differ between machines.
func (s *Training) trained() trainer.Setting {
	var sections map[string]any
	decoder := json.NewDecoder(bytes.NewReader(s.filled.JSON()))
	decoder.UseNumber()
	if decoder.Decode(&sections) != nil {
		return trainer.Setting{Name: "the config", Value: s.filled.Text()}
	}
	delete(sections, "ray")
	sorted, _ := json.Marshal(sections) // cannot fail: it was just decoded
	return trainer.Setting{Name: "the config", Value: string(sorted), Parts: keysOf("", sections)}
}

// keysOf returns every value of a tree of sections with its path, sorted.
func keysOf(path string, tree map[string]any) []trainer.Setting {
	var keys []trainer.Setting
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		at := strings.TrimPrefix(path+"."+key, ".")
		if section, ok := tree[key].(map[string]any); ok && len(section) > 0 {
			keys = append(keys, keysOf(at, section)...)
			continue
		}
		value, _ := json.Marshal(tree[key])
		keys = append(keys, trainer.Setting{Name: at, Value: string(value)})
	}
	return keys
}
