package config

import (
	"fmt"
	"math"
)

// Type is what an argument of a registered function, or a value, is to be.
type Type uint8

// The types. Int accepts floats without a fraction, Float accepts whole numbers,
// Bool accepts 0 and 1, String accepts whole numbers as their digits. Any
// accepts everything, also null and what another registered function made.
const (
	Any Type = iota
	Int
	Float
	Bool
	String
	List
)

// String returns the type's name in messages.
func (t Type) String() string {
	switch t {
	case Any:
		return "any value"
	case Int:
		return "whole number"
	case Float:
		return "number"
	case Bool:
		return "true or false"
	case String:
		return "string"
	case List:
		return "list"
	}
	return fmt.Sprintf("Type(%d)", t)
}

// article returns the name with its article where it has one.
func (t Type) article() string {
	if t == Any || t == Bool {
		return t.String()
	}
	return "a " + t.String()
}

// mismatch says that a value is not of the type.
func (t Type) mismatch(v any) phrase {
	if n, ok := v.(uint64); ok && t == Int {
		return phrase(fmt.Sprintf("a whole number of at most %d is expected, got %d", math.MaxInt, n))
	}
	return phrase(fmt.Sprintf("%s is expected, got %s", t.article(), Describe(v)))
}

// convert makes a resolved value one of the type: int, float64, bool, string,
// []any, or the value itself.
func (t Type) convert(v any) (any, bool) {
	switch t {
	case Int:
		return pack(toInt(v))
	case Float:
		if n, ok := v.(int); ok { // a default written in Go
			return float64(n), true
		}
		return pack(toFloat(v))
	case Bool:
		return pack(toBool(v))
	case String:
		return pack(toString(v))
	case List:
		l, ok := v.([]any)
		return l, ok
	}
	return v, true
}

func pack[T any](v T, ok bool) (any, bool) { return v, ok }

// Describe names a value and its type, as an error does: on one line, and cut
// where it is long.
func Describe(v any) string {
	kind := ""
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		kind = "the string "
	case []any:
		kind = "the list "
	case *Section:
		if !v.inline {
			return "a section"
		}
		kind = "the object "
	case bool, int64, uint64, float64:
	case map[string]any: // a section, resolved
		return "a section"
	default:
		return fmt.Sprintf("a Go value of type %T", v)
	}
	return kind + clip(string(appendJSON(nil, v)))
}
