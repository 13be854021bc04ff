package launch

import "bytes"

// A splitter splits a stream of bytes into lines, independently of how the stream was
// split into writes. It drops nothing but the line ends ("\n" or "\r\n"). A line longer
// than max bytes is emitted in pieces of max bytes.
type splitter struct {
	max  int
	emit func(line []byte) // must not keep line
	part []byte            // start of the current line, from earlier writes; at most max bytes
}

func (s *splitter) write(p []byte) {
	for len(p) > 0 {
		line, rest, ended := bytes.Cut(p, []byte{'\n'})
		for len(s.part)+len(line) > s.max {
			room := s.max - len(s.part)
			s.emit(s.take(line[:room]))
			line = line[room:]
		}
		if !ended {
			s.part = append(s.part, line...)
			return
		}
		s.emit(bytes.TrimSuffix(s.take(line), []byte{'\r'}))
		p = rest
	}
}

// take returns the stored part followed by p, and clears the part. The result is valid
// until the next write.
func (s *splitter) take(p []byte) []byte {
	if len(s.part) == 0 {
		return p
	}
	whole := append(s.part, p...)
	s.part = whole[:0]
	return whole
}

// flush emits an unterminated last line.
func (s *splitter) flush() {
	if len(s.part) > 0 {
		s.emit(s.take(nil))
	}
}
