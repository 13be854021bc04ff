package event

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// namesOf returns the JSON names of a struct's fields.
func namesOf(t reflect.Type) (names []string) {
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// docs/train.md lists every event of "train --json" with all of its fields, because
// programs read them.
func TestEventsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/train.md")
	require.NoError(t, err)
	rows := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if kind, rest, ok := strings.Cut(strings.TrimPrefix(line, "| `"), "` | "); ok {
			rows[kind] = rest
		}
	}
	internal := map[string]bool{"ready": true, "regrouped": true, "progress": true, "failed": true}
	for kind, make := range kinds() {
		row, documented := rows[kind]
		require.Equal(t, !internal[kind], documented, "docs/train.md: %s", kind)
		if !documented {
			continue
		}
		for _, name := range namesOf(reflect.TypeOf(make()).Elem()) {
			if kind == "view" && name == "transport" {
				continue // of bench collective
			}
			require.Contains(t, row, "`"+name+"`", "docs/train.md: the row of %s lacks %s", kind, name)
		}
	}
	for _, name := range namesOf(reflect.TypeFor[Member]()) {
		require.Contains(t, rows["view"], "`"+name+"`")
	}
}

// The names of fields are those that programs read: lower case, with underscores.
func TestFieldNames(t *testing.T) {
	for kind, make := range kinds() {
		for _, name := range namesOf(reflect.TypeOf(make()).Elem()) {
			require.Regexp(t, `^[a-z][a-z0-9_]*$`, name, kind)
			require.NotEqual(t, "event", name, "it would hide the kind")
		}
	}
}

// A line with a field of another type is no event, so it is shown as text.
func TestDecodeRefusesOtherTypes(t *testing.T) {
	for kind, make := range kinds() {
		for _, name := range namesOf(reflect.TypeOf(make()).Elem()) {
			broken, err := json.Marshal(map[string]any{"event": kind, name: map[string]int{"x": 1}})
			require.NoError(t, err)
			require.Nil(t, Decode(broken, nil), "%s", broken)
		}
	}
}
