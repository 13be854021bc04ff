package collective

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// MaxAbort is the maximum length of what PutAbort returns, in bytes.
const MaxAbort = 1024

// causes are the errors that keep their identity on the wire: errors.Is still
// finds them on the ranks that receive the report. The wire carries their
// position here, so the order is part of the wire format.
var causes = [...]error{ErrLost, ErrSilent, ErrLeft, ErrLate, ErrMismatch, context.Canceled, ErrClosed, ErrNotConnected}

// PutAbort returns the wire form of the message that cause broke a View: the
// culprit, the rank that reports it, a code for the cause, and two texts. by is
// the reporting rank, unless cause is itself a report of a rank of the View. Texts are cut to keep
// the message within MaxAbort bytes.
func PutAbort(cause *RankError, by int) []byte {
	code := byte(0)
	for i, sentinel := range causes {
		if errors.Is(cause.Err, sentinel) {
			code = byte(i + 1)
			break
		}
	}
	text := cause.Err
	var reported *ReportedError
	if errors.As(text, &reported) && reported.By >= 0 {
		text, by = reported.Err, reported.By
	}
	b := make([]byte, 0, 64)
	b = binary.LittleEndian.AppendUint32(b, uint32(cause.Rank))
	b = binary.LittleEndian.AppendUint32(b, uint32(by))
	b = append(b, code)
	b = appendText(b, cause.Phase, 64)
	return appendText(b, fmt.Sprint(text), MaxAbort-len(b)-2)
}

// GetAbort reads what PutAbort wrote. A message that is malformed or names a
// rank outside the View of size ranks is an error.
func GetAbort(b []byte, size int) (*RankError, error) {
	if len(b) < 9 || len(b) > MaxAbort {
		return nil, fmt.Errorf("collective: abort message has %d bytes, want 9 to %d", len(b), MaxAbort)
	}
	rank, by, code := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:]), b[8]
	phase, rest, ok := cutText(b[9:])
	text, rest, ok2 := cutText(rest)
	if !ok || !ok2 || len(rest) != 0 || rank >= uint32(size) || by >= uint32(size) || int(code) > len(causes) {
		return nil, fmt.Errorf("collective: malformed abort message (%d bytes)", len(b))
	}
	var err error = &textError{text: text}
	if code > 0 {
		err = &textError{text: text, is: causes[code-1]}
	}
	return &RankError{Rank: int(rank), Phase: phase, Err: &ReportedError{By: int(by), Err: err}}, nil
}

// A textError is an error that arrived as text. It also matches the sentinel
// that its code named, if any.
type textError struct {
	text string
	is   error
}

func (e *textError) Error() string        { return e.text }
func (e *textError) Is(target error) bool { return target == e.is }

func appendText(b []byte, s string, most int) []byte {
	s = strings.ToValidUTF8(s[:min(len(s), most)], "") // without half a rune at the end
	b = binary.LittleEndian.AppendUint16(b, uint16(len(s)))
	return append(b, s...)
}

func cutText(b []byte) (text string, rest []byte, ok bool) {
	if len(b) < 2 {
		return "", nil, false
	}
	n := int(binary.LittleEndian.Uint16(b))
	if len(b) < 2+n {
		return "", nil, false
	}
	return string(b[2 : 2+n]), b[2+n:], true
}
