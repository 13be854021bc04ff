package config

import "fmt"

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

// Error returns one line, "file:line: what".
func (e *Error) Error() string { return e.Pos.String() + ": " + e.Msg }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func fail(pos Pos, format string, args ...any) *Error {
	return &Error{Pos: pos, Msg: fmt.Sprintf(format, args...)}
}
