package paramserver

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// arenasOf returns arenas of these lengths, with recognisable contents.
func arenasOf(x float32, lens ...int) [][]float32 {
	var all [][]float32
	for _, n := range lens {
		arena := make([]float32, n)
		for i := range arena {
			arena[i] = x + float32(i)
		}
		all = append(all, arena)
	}
	return all
}

func openTest(t *testing.T, path, id string, elements int) *shareFile {
	f, err := openShareFile(path, []byte(id), elements)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.close() })
	return f
}

// A file has the last two steps, of whatever size, also for the process that opens it next.
func TestShareFile(t *testing.T) {
	for _, lens := range [][]int{{16}, {16, 16, 16}, {1024}, {5000, 5000}} {
		elements := 0
		for _, n := range lens {
			elements += n
		}
		path := filepath.Join(t.TempDir(), "share")
		f := openTest(t, path, "a", elements)
		_, err := f.newest()
		require.ErrorContains(t, err, "nothing was saved")
		for step := int64(7); step < 12; step++ {
			require.NoError(t, f.save(step, arenasOf(float32(step), lens...)))
			f = openTest(t, path, "a", elements)
			newest, err := f.newest()
			require.NoError(t, err)
			require.Equal(t, step, newest)
			for _, back := range []int64{step, max(step-1, 7)} {
				got := arenasOf(0, lens...)
				require.NoError(t, f.load(back, got))
				require.Equal(t, arenasOf(float32(back), lens...), got)
			}
		}
		require.ErrorContains(t, f.load(9, arenasOf(0, lens...)), "holds step 11")
		require.NoError(t, f.reset())
		_, err = f.newest()
		require.ErrorContains(t, err, "nothing was saved")
	}
}

// A process that dies within save leaves the step before.
func TestShareFileTorn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "share")
	f := openTest(t, path, "a", 16)
	require.NoError(t, f.save(4, arenasOf(4, 16)))
	require.NoError(t, f.save(5, arenasOf(5, 16)))
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, f.save(6, arenasOf(6, 16)))
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	erased := append(make([]byte, shareHeaderLen), before[shareHeaderLen:]...)
	for _, written := range []int{shareHeaderSpace, shareHeaderSpace + 10, shareHeaderSpace + 64} {
		torn := append(append(append([]byte(nil), erased[:shareHeaderSpace]...), after[shareHeaderSpace:written]...), before[written:]...)
		require.NoError(t, os.WriteFile(path, torn, 0o600))
		newest, err := f.newest()
		require.NoError(t, err)
		require.EqualValues(t, 5, newest)
		got := arenasOf(0, 16)
		require.NoError(t, f.load(5, got))
		require.Equal(t, arenasOf(5, 16), got)
		require.ErrorContains(t, f.load(6, got), "nothing was saved")
	}
}

// Damage, and files of other runs, are errors that name the file.
func TestShareFileDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "share")
	f := openTest(t, path, "a", 16)
	require.NoError(t, f.save(4, arenasOf(4, 16)))
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	for at := range shareHeaderLen {
		bad := append([]byte(nil), good...)
		bad[at] ^= 4
		require.NoError(t, os.WriteFile(path, bad, 0o600))
		_, err := f.newest()
		require.ErrorContains(t, err, path, "byte %d", at)
		require.ErrorContains(t, err, "its header is damaged", "byte %d", at)
	}
	bad := append([]byte(nil), good...)
	bad[shareHeaderSpace+7] ^= 1
	require.NoError(t, os.WriteFile(path, bad, 0o600))
	require.ErrorContains(t, f.load(4, arenasOf(0, 16)), "step 4 is damaged: resume from a checkpoint")
	require.NoError(t, os.WriteFile(path, good[:shareHeaderSpace+8], 0o600))
	require.ErrorContains(t, f.load(4, arenasOf(0, 16)), "step 4 is damaged")

	require.NoError(t, os.WriteFile(path, good, 0o600))
	_, err = openTest(t, path, "b", 16).newest()
	require.ErrorContains(t, err, "it belongs to another run")
	_, err = openShareFile(t.TempDir(), nil, 1)
	require.ErrorContains(t, err, "opening the file of this server")
}

// Whatever a file holds, reading it gives what was kept, or an error that names the file. With
// sign, both headers get the checksum that they need, so that a reader believes them.
func FuzzShareFile(f *testing.F) {
	lens := []int{16, 5}
	kept := func(id string) []byte {
		path := filepath.Join(f.TempDir(), "share")
		s, err := openShareFile(path, []byte(id), 21)
		require.NoError(f, err)
		require.NoError(f, s.save(4, arenasOf(4, lens...)))
		require.NoError(f, s.save(5, arenasOf(5, lens...)))
		require.NoError(f, s.close())
		file, err := os.ReadFile(path)
		require.NoError(f, err)
		return file
	}
	good := kept("a")
	const half = 2 * shareHeaderSpace
	negative := slices.Clone(good[:half])
	negative[stepAt+7] = 0x80
	f.Add(negative, true)
	for _, sign := range []bool{false, true} {
		f.Add(good, sign)
		f.Add(kept("b"), sign)
		for _, n := range []int{0, 1, shareHeaderLen - 1, shareHeaderSpace + 8, half, half + idAt, half + shareHeaderLen, len(good) - 1} {
			f.Add(good[:n], sign)
		}
		for _, at := range []int{0, stepAt, stepAt + 7, idAt, payloadAt, checkAt, shareHeaderSpace, half + stepAt, half + shareHeaderSpace + 83} {
			bad := slices.Clone(good)
			bad[at] ^= 0x80
			f.Add(bad, sign)
		}
	}
	f.Fuzz(func(t *testing.T, file []byte, sign bool) {
		file = slices.Clone(file) // a target must not change its input
		for at := 0; sign && at+shareHeaderLen <= len(file) && at <= half; at += half {
			header := file[at : at+shareHeaderLen]
			binary.LittleEndian.PutUint32(header[checkAt:], crc32.Checksum(header[:checkAt], castagnoli))
		}
		path := filepath.Join(t.TempDir(), "share")
		require.NoError(t, os.WriteFile(path, file, 0o600))
		s := openTest(t, path, "a", 21)
		newest, err := s.newest()
		if err != nil {
			require.ErrorContains(t, err, path)
			require.NotContains(t, err.Error(), "nil", "it has a reason")
			newest = 5
		}
		require.GreaterOrEqual(t, newest, int64(0))
		for _, step := range []int64{newest, max(newest-1, 0), 4, 5} {
			got := arenasOf(0, lens...)
			if err := s.load(step, got); err != nil {
				require.ErrorContains(t, err, path)
				continue
			}
			if !sign {
				require.Contains(t, []int64{4, 5}, step)
				require.Equal(t, arenasOf(float32(step), lens...), got)
			}
			require.Contains(t, [][][]float32{arenasOf(4, lens...), arenasOf(5, lens...)}, got)
		}
	})
}
