// Package tuned stores tables of the fastest allreduce algorithm for each size, as
// measured by "ringtrain tune", and makes groups use them.
//
// A table is valid only where it was measured. Its [Fingerprint] says where that was,
// and determines the name of its file in the user's cache directory.
package tuned
