package config

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Pos is where a value was written.
type Pos struct {
	Source string // the file, or the command-line option "--section.key"
	Line   int    // from 1; 0 when the source has no lines
}

// String returns source:line, or the source alone.
func (p Pos) String() string {
	if p.Line == 0 {
		return p.Source
	}
	return fmt.Sprintf("%s:%d", p.Source, p.Line)
}

// Error is a mistake in a configuration, or in how it is used.
type Error struct {
	Pos Pos    // of the offending line
	Msg string // what is wrong and what to do
	Err error  // the cause, nil when there is none beneath
}

// Error returns one line, "file:line: what". Control characters are escaped.
func (e *Error) Error() string { return printable(e.Pos.String() + ": " + e.Msg) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// A phrase is a part of a message that is ours, or was cut already.
type phrase string

// fail makes an error. Strings among the arguments are what somebody wrote, and are cut.
func fail(pos Pos, format string, args ...any) *Error {
	return &Error{Pos: pos, Msg: string(phrasef(format, args...))}
}

// phrasef is Sprintf with long strings cut.
func phrasef(format string, args ...any) phrase {
	short := make([]any, len(args))
	for i, a := range args {
		if s, ok := a.(string); ok {
			a = clip(s)
		}
		short[i] = a
	}
	return phrase(fmt.Sprintf(format, short...))
}

// longest is how much of a value a message repeats, in runes.
const longest = 80

// clip cuts a long text.
func clip(s string) string {
	n := 0
	for i := range s {
		if n++; n > longest {
			return s[:i] + "..."
		}
	}
	return s
}

// printable escapes what a terminal would act on, and what is not text.
func printable(s string) string {
	var b strings.Builder
	for i, r := range s {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			_, size := utf8.DecodeRuneInString(s[i:])
			quoted := strconv.Quote(s[i : i+size])
			b.WriteString(quoted[1 : len(quoted)-1])
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
