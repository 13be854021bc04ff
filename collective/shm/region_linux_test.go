package shm

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// On a kernel that does not know the flag for files that cannot be executed, the
// file is made without it.
func TestMemoryFileFallsBack(t *testing.T) {
	var asked []int
	old := func(_ string, flags int) (int, error) {
		asked = append(asked, flags)
		if flags&unix.MFD_NOEXEC_SEAL != 0 {
			return -1, unix.EINVAL
		}
		return 5, nil
	}
	fd, err := memoryFile(old)
	require.NoError(t, err)
	require.Equal(t, 5, fd)
	require.Len(t, asked, 2)
	_, err = memoryFile(func(string, int) (int, error) { return -1, unix.EACCES })
	require.ErrorIs(t, err, unix.EACCES)
}

// The memory can never be executed, as vm.memfd_noexec=2 demands.
func TestMemoryIsNotExecutable(t *testing.T) {
	known, err := unix.MemfdCreate("ringtrain", unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) {
		t.Skip("Linux before 6.3")
	}
	require.NoError(t, err)
	require.NoError(t, unix.Close(known))
	fd, err := create(pageBytes, reserve)
	require.NoError(t, err)
	defer unix.Close(fd)
	have, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	require.NoError(t, err)
	require.NotZero(t, have&unix.F_SEAL_EXEC)
}
