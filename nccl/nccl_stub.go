//go:build !(gpu && cgo && linux)

package nccl

import "github.com/ringtrain/ringtrain/cuda"

// The functions below are never reached, because in this program Available always returns an
// error, so there is no Comm.

func bind([len(functions)]uintptr)                             {}
func getVersion() (Version, error)                             { return 0, cuda.Available() }
func errorString(Result) string                                { return "" }
func lastError(uintptr) string                                 { return "" }
func getUniqueID(*UniqueID) Result                             { return InvalidUsage }
func initRank(int, *UniqueID, int) (comm uintptr, r Result)    { return 0, InvalidUsage }
func split(uintptr, int, int) (part uintptr, r Result)         { return 0, InvalidUsage }
func finalize(uintptr) Result                                  { return InvalidUsage }
func destroy(uintptr) Result                                   { return InvalidUsage }
func abort(uintptr) Result                                     { return InvalidUsage }
func asyncError(uintptr) (state, r Result)                     { return InvalidUsage, InvalidUsage }
func count(uintptr) (int, Result)                              { return 0, InvalidUsage }
func userRank(uintptr) (int, Result)                           { return 0, InvalidUsage }
func cuDevice(uintptr) (int, Result)                           { return 0, InvalidUsage }
func run(_, _ uintptr, _ []Command, _ bool) (at int, r Result) { return 0, InvalidUsage }
