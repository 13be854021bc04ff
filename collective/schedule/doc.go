// Package schedule contains the algorithms of collective operations as pure
// functions of rank, size and length. They say which rank sends which piece to
// which other rank, and when. Nothing here moves a byte, so tests can prove the
// algorithms on symbols. An engine carries them out over any transport.
//
// A vector is cut into blocks of 4096 elements of its arena. A chunk is all
// blocks whose number is the same modulo the number of ranks. A segment is a
// run of blocks of one chunk that travels as one message.
package schedule
