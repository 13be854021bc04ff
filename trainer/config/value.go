package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// errNotJSON means that a text is not a JSON value and so stands for itself.
var errNotJSON = errors.New("not JSON")

// parseJSON reads a JSON value into the types of Section. It returns errNotJSON if the text
// is not JSON. Other errors are about values that JSON allows and the tree does not.
func parseJSON(text, path string, pos Pos) (any, error) {
	if !json.Valid([]byte(text)) {
		return nil, errNotJSON
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	r := jsonReader{dec: dec, path: path, pos: pos, replaced: replaced(text)}
	return r.value()
}

// replaced reports whether a JSON text itself contains the replacement character. In
// other texts that character comes from the decoder, which puts it in place of an
// unpaired \u surrogate.
func replaced(text string) bool {
	return strings.ContainsRune(text, utf8.RuneError) || strings.Contains(strings.ToLower(text), `\ufffd`)
}

type jsonReader struct {
	dec  *json.Decoder
	path string
	pos  Pos

	replaced bool
}

func (r *jsonReader) value() (any, error) {
	t, err := r.dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Delim:
		if t == '[' {
			return r.list()
		}
		return r.object()
	case json.Number:
		return number(t.String())
	}
	if s, ok := t.(string); ok {
		return s, r.whole(s)
	}
	return t, nil // nil, bool
}

// whole rejects a string with an unpaired surrogate.
func (r *jsonReader) whole(s string) error {
	if !r.replaced && strings.ContainsRune(s, utf8.RuneError) {
		return fmt.Errorf("%q contains an unpaired surrogate; write both halves, or the character itself", clip(s))
	}
	return nil
}

func (r *jsonReader) list() (any, error) {
	list := []any{}
	for r.dec.More() {
		v, err := r.value()
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := r.dec.Token()
	return list, err
}

func (r *jsonReader) object() (any, error) {
	s := &Section{path: r.path, pos: r.pos, inline: true}
	seen := make(map[string]bool)
	for r.dec.More() {
		t, err := r.dec.Token()
		if err != nil {
			return nil, err
		}
		key, _ := t.(string) // json.Valid has checked this
		if err := r.whole(key); err != nil {
			return nil, err
		}
		if seen[key] {
			return nil, fmt.Errorf("the object has %q twice; delete one of the two", clip(key))
		}
		seen[key] = true
		v, err := r.value()
		if err != nil {
			return nil, err
		}
		s.entries = append(s.entries, Entry{Key: key, Value: v, Pos: r.pos})
	}
	_, err := r.dec.Token()
	return s, err
}

// number keeps whole numbers exact: as an int64 if it fits, otherwise as a uint64. Larger
// numbers are an error, because a float would lose digits.
func number(text string) (any, error) {
	if !strings.ContainsAny(text, ".eE") {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n, nil
		}
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("the whole number %s does not fit into 64 bits; write it in quotes, or with a decimal point", clip(text))
		}
		return n, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, fmt.Errorf("the number %s is too large", clip(text))
	}
	return f, nil
}

// appendJSON appends a value as JSON on one line, with the spacing of Python's json.dumps.
func appendJSON(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...)
	case bool:
		return strconv.AppendBool(b, v)
	case int64:
		return strconv.AppendInt(b, v, 10)
	case uint64:
		return strconv.AppendUint(b, v, 10)
	case float64:
		return appendFloat(b, v)
	case string:
		return appendString(b, v)
	case []any:
		b = append(b, '[')
		for i, x := range v {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = appendJSON(b, x)
		}
		return append(b, ']')
	case *Section:
		b = append(b, '{')
		for i, e := range v.entries {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = append(appendString(b, e.Key), ": "...)
			b = appendJSON(b, e.Value)
		}
		return append(b, '}')
	}
	return b
}

// appendFloat appends a float as Python writes it, so that it reads back as the same float.
func appendFloat(b []byte, f float64) []byte {
	if size := math.Abs(f); size != 0 && (size < 1e-4 || size >= 1e16) {
		return strconv.AppendFloat(b, f, 'e', -1, 64)
	}
	start := len(b)
	b = strconv.AppendFloat(b, f, 'f', -1, 64)
	if bytes.IndexByte(b[start:], '.') < 0 {
		b = append(b, ".0"...)
	}
	return b
}

// appendString quotes a string without escaping <, > and &.
func appendString(b []byte, s string) []byte {
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return strconv.AppendQuote(b, s) // cannot happen: strings can always be encoded
	}
	return append(b, strings.TrimSuffix(out.String(), "\n")...)
}
