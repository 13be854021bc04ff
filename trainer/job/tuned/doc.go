// Package tuned keeps which algorithm is the fastest for each size of an allreduce,
// as "ringtrain tune" measured it, and has groups use it.
//
// A table is of use only where it was measured. Its [Fingerprint] says where that
// is, and is part of the name of its file in the user's cache directory.
package tuned
