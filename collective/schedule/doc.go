// Package schedule has the algorithms of collective operations as pure
// functions of rank, size and length: who sends which piece to whom, and when.
// Nothing here moves a byte, so the algorithms can be proved on symbols; an
// engine carries them out over any transport.
//
// The names of sizes are: a vector is cut into blocks of 4096 elements of its
// arena; a chunk is all blocks whose number is the same modulo the number of
// ranks; a segment is a run of blocks of one chunk that travels as one message.
package schedule
