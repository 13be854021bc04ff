package nccl

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/cuda"
)

// The numbers are from NCCL's header of each version.
func TestVersion(t *testing.T) {
	for _, v := range []struct {
		parts [3]int
		code  Version
		text  string
	}{
		{[3]int{2, 3, 5}, 2305, "2.3.5"},
		{[3]int{2, 8, 4}, 2804, "2.8.4"},
		{[3]int{2, 9, 6}, 20906, "2.9.6"},
		{[3]int{2, 19, 3}, 21903, "2.19.3"},
		{[3]int{2, 30, 7}, 23007, "2.30.7"},
	} {
		require.Equal(t, v.code, NewVersion(v.parts[0], v.parts[1], v.parts[2]))
		require.Equal(t, v.text, v.code.String())
	}
	require.Equal(t, NewVersion(2, 19, 3), Oldest)
	require.Less(t, NewVersion(2, 8, 4), NewVersion(2, 9, 6))
}

func TestErrorHasNCCLsName(t *testing.T) {
	err := error(&Error{Call: "ncclAllReduce", Result: RemoteError, Text: "remote process exited"})
	require.EqualError(t, err, "ncclAllReduce: ncclRemoteError: remote process exited")
	require.ErrorIs(t, fmt.Errorf("step 3: %w", err), &Error{Result: RemoteError})
	require.NotErrorIs(t, err, &Error{Call: "ncclReduce", Result: RemoteError})
	require.NotErrorIs(t, err, ErrInProgress)
	require.Equal(t, "ncclTimeout", Result(8).String(), "our numbers must be NCCL's")
	require.Equal(t, "ncclResult(77)", Result(77).String())
}

func TestUsable(t *testing.T) {
	version := func(v Version) func() (Version, error) { return func() (Version, error) { return v, nil } }
	library := &cuda.Shared{Library: cuda.NCCL, Path: "/lib/libnccl.so.2"}
	v, err := usable(library, "", version(Oldest))
	require.NoError(t, err)
	require.Equal(t, Oldest, v)
	_, err = usable(library, "ncclCommFinalize", version(NewVersion(2, 12, 7)))
	require.ErrorContains(t, err, "/lib/libnccl.so.2 is NCCL 2.12.7, and 2.19.3 or newer is needed: pip install")
	_, err = usable(library, "ncclSend", version(NewVersion(2, 20, 5)))
	require.ErrorContains(t, err, "ncclSend")
	_, err = usable(library, "ncclGetVersion", func() (Version, error) { panic("the function is missing") })
	require.ErrorContains(t, err, "not NCCL")
}

func TestResolve(t *testing.T) {
	without := func(absent ...string) func(string) (uintptr, error) {
		return func(name string) (uintptr, error) {
			for _, a := range absent {
				if a == name {
					return 0, errors.New("no such symbol")
				}
			}
			return 1, nil
		}
	}
	_, missing := resolve(without())
	require.Empty(t, missing)
	_, missing = resolve(without("ncclSend", "ncclRecv"))
	require.Equal(t, "ncclSend", missing)
}

// With and without GPU support, one line says what is missing.
func TestMissingLibrary(t *testing.T) {
	t.Setenv("RINGTRAIN_CUDA_LIB", filepath.Join(t.TempDir(), "none"))
	err := Available()
	if loaded.library != nil {
		t.Skip("another test has loaded NCCL")
	}
	require.ErrorIs(t, err, cuda.ErrUnavailable)
	require.NotContains(t, err.Error(), "\n")
	_, err = GetUniqueID()
	require.ErrorIs(t, err, cuda.ErrUnavailable)
	_, err = InitRank(1, UniqueID{}, 0)
	require.ErrorIs(t, err, cuda.ErrUnavailable)
}

func TestNoCommunicator(t *testing.T) {
	var none Comm
	require.True(t, none.None())
	require.Empty(t, none.LastError())
	for _, err := range []error{
		none.AsyncError(), none.Finalize(), none.Destroy(), none.Abort(),
		none.Send(0, 1, Float32, 0, cuda.Stream{}), none.Group(cuda.Stream{}, []Command{{}}),
	} {
		require.ErrorIs(t, err, &Error{Result: InvalidArgument})
	}
	require.NoError(t, none.Group(cuda.Stream{}, nil))
}
