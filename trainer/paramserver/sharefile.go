package paramserver

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"

	"github.com/ringtrain/ringtrain/collective"
)

// A shareFile keeps the last two steps of a share, for a server that is started again. Each
// step has a half of the file, with a header that is written last and erased first.
//
// On Linux the file is mapped, so that keeping a step takes one copy and no system call.
// Elsewhere, and if it cannot be mapped, it is written. It is always read, not mapped: a file
// that is too short then gives an error, and not a fault.
//
// What a process has stored stays in the kernel's page cache when the process is killed. If
// the machine itself dies, nothing is promised: nothing is synced, and the kernel may have
// written any part of the file. What it has not written completely has a wrong checksum.
type shareFile struct {
	file   *os.File
	id     [sha256.Size]byte // of the share, so that a file of another run is recognised
	half   int64             // bytes of a half, with its header
	mapped []byte            // both halves, after reset; nil if they are written
}

// Parts of a header. Its checksum follows.
const (
	fileMagic        = "RTSHARE1"
	stepAt           = len(fileMagic)
	idAt             = stepAt + 8
	payloadAt        = idAt + sha256.Size
	checkAt          = payloadAt + 4
	shareHeaderLen   = checkAt + 4
	shareHeaderSpace = 4096 // so that a header and what follows it are on different pages
)

// storedAtOnce is the number of bytes that are stored before they are added to the checksum:
// they are still in a cache then.
const storedAtOnce = 64 << 10

// castagnoli is the polynomial that processors have an instruction for.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// openShareFile opens the file of a share with this many elements in all its arenas, and
// creates it if necessary. id is a description of the share.
func openShareFile(path string, id []byte, elements int) (*shareFile, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("paramserver: opening the file of this server: %w", err)
	}
	payload := (4*int64(elements) + shareHeaderSpace - 1) / shareHeaderSpace * shareHeaderSpace
	return &shareFile{file: f, id: sha256.Sum256(id), half: shareHeaderSpace + payload}, nil
}

// open opens the file of the share, if it has one. layout is the encoded layout.
func (s *share) open(layout []byte) (err error) {
	if s.keep == "" {
		return nil
	}
	id := fmt.Appendf(nil, "%s %v", layout, s.pieces)
	s.file, err = openShareFile(s.keep, id, s.params.Values.Len()*(1+len(s.layout.Slots)))
	return err
}

// arenas returns what is kept of the share.
func (s *share) arenas() [][]float32 {
	all := [][]float32{s.params.Values.Float32s()}
	for _, name := range s.layout.Slots {
		all = append(all, s.arena(name).Float32s())
	}
	return all
}

// keepFirst keeps the share before the first step, and forgets what was in the file.
func (s *share) keepFirst() error {
	if s.file == nil {
		return nil
	}
	if err := s.file.reset(); err != nil {
		return err
	}
	return s.keepStep()
}

// keepStep keeps the share after a step.
func (s *share) keepStep() error {
	if s.file == nil {
		return nil
	}
	return s.file.save(int64(s.state.Step), s.arenas())
}

// newest returns the last step that the server has kept.
func (s *share) newest() (int64, error) {
	if s.file == nil {
		return 0, errors.New("paramserver: this server was started again and has kept nothing: give it a file")
	}
	return s.file.newest()
}

// load sets the share to what it was after a step.
func (s *share) load(step int64) error {
	s.state.Step = int(step)
	return s.file.load(step, s.arenas())
}

// reset forgets both steps.
func (f *shareFile) reset() error {
	if err := f.unmap(); err != nil {
		return f.failed(err)
	}
	return f.failed(f.file.Truncate(0))
}

// save keeps the arenas after a step. The step before it stays readable.
func (f *shareFile) save(step int64, arenas [][]float32) error {
	if f.mapped == nil {
		f.mapped, _ = mapFile(f.file, 2*f.half) // what cannot be mapped is written
	}
	at := step % 2 * f.half
	if err := f.store(make([]byte, shareHeaderLen), at); err != nil {
		return f.failed(err)
	}
	sum, to := uint32(0), at+shareHeaderSpace
	for _, arena := range arenas {
		b, _ := collective.Of(arena).Host()
		for part := range slices.Chunk(b, storedAtOnce) {
			if err := f.store(part, to); err != nil {
				return f.failed(err)
			}
			sum, to = crc32.Update(sum, castagnoli, part), to+int64(len(part))
		}
	}
	return f.failed(f.store(f.header(step, sum), at))
}

// store stores b in the file. Stores take effect in the order of the calls, also if the
// process is killed.
func (f *shareFile) store(b []byte, at int64) error {
	if f.mapped != nil {
		copy(f.mapped[at:], b)
		return nil
	}
	_, err := f.file.WriteAt(b, at)
	return err
}

func (f *shareFile) unmap() error {
	mem := f.mapped
	f.mapped = nil
	return unmapFile(mem)
}

func (f *shareFile) header(step int64, sum uint32) []byte {
	h := append([]byte(fileMagic), binary.LittleEndian.AppendUint64(nil, uint64(step))...)
	h = binary.LittleEndian.AppendUint32(append(h, f.id[:]...), sum)
	return binary.LittleEndian.AppendUint32(h, crc32.Checksum(h, castagnoli))
}

// errEmpty is why a half that is being written, or never was, has no step.
var errEmpty = errors.New("nothing was saved")

// step returns the step of a half, and the checksum that its contents should have.
func (f *shareFile) step(half int64) (step int64, sum uint32, err error) {
	h := make([]byte, shareHeaderLen)
	if _, err := f.file.ReadAt(h, half*f.half); err != nil && !errors.Is(err, io.EOF) {
		return 0, 0, err
	}
	step = int64(binary.LittleEndian.Uint64(h[stepAt:]))
	switch {
	case bytes.Equal(h, make([]byte, shareHeaderLen)):
		return 0, 0, errEmpty
	case crc32.Checksum(h[:checkAt], castagnoli) != binary.LittleEndian.Uint32(h[checkAt:]), string(h[:stepAt]) != fileMagic, step < 0, step%2 != half:
		return 0, 0, errors.New("its header is damaged")
	case !bytes.Equal(h[idAt:payloadAt], f.id[:]):
		return 0, 0, errors.New("it belongs to another run")
	}
	return step, binary.LittleEndian.Uint32(h[payloadAt:]), nil
}

// newest returns the last step that was saved.
func (f *shareFile) newest() (int64, error) {
	newest, whys := int64(-1), [2]error{}
	for half := range whys {
		step, _, err := f.step(int64(half))
		if whys[half] = err; err == nil {
			newest = max(newest, step)
		}
	}
	if newest < 0 {
		return 0, f.failed(fmt.Errorf("it holds no step, in the first half because %w, in the second because %w: resume from a checkpoint", whys[0], whys[1]))
	}
	return newest, nil
}

// load reads the arenas after a step. After an error their contents are undefined.
func (f *shareFile) load(step int64, arenas [][]float32) error {
	held, want, err := f.step(step % 2)
	if err == nil && held != step {
		err = fmt.Errorf("that half holds step %d", held)
	}
	if err != nil {
		return f.failed(fmt.Errorf("step %d: %w: resume from a checkpoint", step, err))
	}
	sum, from := uint32(0), step%2*f.half+shareHeaderSpace
	for _, arena := range arenas {
		b, _ := collective.Of(arena).Host()
		if _, err := f.file.ReadAt(b, from); err != nil && !errors.Is(err, io.EOF) {
			return f.failed(err)
		}
		sum, from = crc32.Update(sum, castagnoli, b), from+int64(len(b))
	}
	if sum != want {
		return f.failed(fmt.Errorf("step %d is damaged: resume from a checkpoint", step))
	}
	return nil
}

// failed adds the name of the file to an error.
func (f *shareFile) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("paramserver: the file of this server, %s: %w", f.file.Name(), err)
}

func (f *shareFile) close() error { return errors.Join(f.unmap(), f.file.Close()) }
