package collective

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
)

// MaxAbort is the most bytes that PutAbort writes.
const MaxAbort = 1024

// causes are the errors that keep their identity on the wire: errors.Is finds
// them on the ranks that were told.
var causes = [...]error{ErrLost, ErrSilent, ErrLeft, ErrLate, ErrMismatch, context.Canceled, ErrClosed, ErrNotConnected}

// PutAbort is the wire form of the news that cause broke a View, as told by a
// rank: culprit, teller, a code for the cause, and two texts. Texts are cut so
// that the whole has at most MaxAbort bytes.
func PutAbort(cause *RankError, by int) []byte {
	code := byte(0)
	for i, sentinel := range causes {
		if errors.Is(cause.Err, sentinel) {
			code = byte(i + 1)
			break
		}
	}
	text := cause.Err
	var told *ReportedError
	if errors.As(text, &told) {
		text, by = told.Err, told.By
	}
	b := make([]byte, 0, 64)
	b = binary.LittleEndian.AppendUint32(b, uint32(cause.Rank))
	b = binary.LittleEndian.AppendUint32(b, uint32(by))
	b = append(b, code)
	b = appendText(b, cause.Phase, 64)
	return appendText(b, fmt.Sprint(text), MaxAbort-len(b)-2)
}

// GetAbort reads what PutAbort wrote. The ranks in it are below size, or it is
// an error.
func GetAbort(b []byte, size int) (*RankError, error) {
	if len(b) < 9 || len(b) > MaxAbort {
		return nil, fmt.Errorf("collective: an abort message of %d bytes", len(b))
	}
	rank, by, code := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:]), b[8]
	phase, rest, ok := cutText(b[9:])
	text, rest, ok2 := cutText(rest)
	if !ok || !ok2 || len(rest) != 0 || rank >= uint32(size) || by >= uint32(size) || int(code) > len(causes) {
		return nil, fmt.Errorf("collective: a malformed abort message of %d bytes", len(b))
	}
	var err error = &textError{text: text}
	if code > 0 {
		err = &textError{text: text, is: causes[code-1]}
	}
	return &RankError{Rank: int(rank), Phase: phase, Err: &ReportedError{By: int(by), Err: err}}, nil
}

// A textError is an error that came as text, with the identity it had.
type textError struct {
	text string
	is   error
}

func (e *textError) Error() string        { return e.text }
func (e *textError) Is(target error) bool { return target == e.is }

func appendText(b []byte, s string, most int) []byte {
	s = s[:min(len(s), most)]
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
