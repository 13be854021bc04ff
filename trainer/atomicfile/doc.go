// Package atomicfile replaces files atomically: a reader, or a crash at any
// moment, finds the old content or the new, never a part of it.
//
// The new content goes to a temporary file in the same directory. Replace syncs
// that file, renames it and syncs the directory, so that the new name survives a
// power cut. Windows syncs no directories: there the rename may be lost in a power
// cut, but it is atomic between processes.
package atomicfile
