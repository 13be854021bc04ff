package config

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Pos is the place where a value was written.
type Pos struct {
	Source string // the file, or the command-line option "--section.key"
	Line   int    // counted from 1; 0 if the source has no lines
}

// String returns source:line, or the source alone.
func (p Pos) String() string {
	if p.Line == 0 {
		return p.Source
	}
	return fmt.Sprintf("%s:%d", p.Source, p.Line)
}

// Error is a mistake in a configuration or in its use.
type Error struct {
	Pos Pos    // of the offending line
	Msg string // what is wrong and what to do
	Err error  // the cause; may be nil
}

// Error returns one line, "file:line: what". Control characters are escaped.
func (e *Error) Error() string {
	msg := e.Msg
	if path, option := strings.CutPrefix(e.Pos.Source, "--"); option { // it says the key already
		msg = strings.TrimPrefix(msg, path+": ")
	}
	return printable(e.Pos.String() + ": " + msg)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// A phrase is a part of a message that needs no clipping.
type phrase string

// fail returns an error. String arguments come from the config, so fail clips them.
func fail(pos Pos, format string, args ...any) *Error {
	return &Error{Pos: pos, Msg: string(phrasef(format, args...))}
}

// phrasef is Sprintf with long string arguments clipped.
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

// maxQuoted is the longest part of a value that a message repeats, in runes.
const maxQuoted = 80

// clip shortens a long text.
func clip(s string) string {
	n := 0
	for i := range s {
		if n++; n > maxQuoted {
			return s[:i] + "..."
		}
	}
	return s
}

// printable escapes control characters and invalid text.
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
