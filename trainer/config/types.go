package config

import (
	"fmt"
	"math"
	"strings"
)

// Type is the expected type of an argument or value.
type Type uint8

// The types. Int accepts floats without a fraction, Float accepts whole numbers, Bool
// accepts 0 and 1, and String accepts whole numbers as their digits. Any accepts
// everything, including null and results of other registered functions.
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

// article returns the name with an article if it takes one.
func (t Type) article() string {
	if t == Any || t == Bool {
		return t.String()
	}
	return "a " + t.String()
}

// withArticle returns a noun with its indefinite article.
func withArticle(noun string) string {
	if noun != "" && strings.ContainsAny(noun[:1], "aeiou") {
		return "an " + noun
	}
	return "a " + noun
}

// mismatch returns a message that a value does not have the type.
func (t Type) mismatch(v any) phrase {
	if n, ok := v.(uint64); ok && t == Int {
		return phrase(fmt.Sprintf("expected a whole number of at most %d, got %d", math.MaxInt, n))
	}
	return phrase(fmt.Sprintf("expected %s, got %s", t.article(), Describe(v)))
}

// convert converts a resolved value to the type: int, float64, bool, string or []any. Any
// returns it unchanged.
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

// Describe returns a value and its type for use in an error, on one line and clipped
// if it is long.
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
	case map[string]any: // a resolved section
		return "a section"
	default:
		return fmt.Sprintf("a Go value of type %T", v)
	}
	return kind + clip(string(appendJSON(nil, v)))
}
