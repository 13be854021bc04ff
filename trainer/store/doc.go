// Package store keeps named values on disk and serves them to other processes.
//
// A value is a tensor or bytes, with a version that counts its updates. [DB] is a
// store in a directory of this machine, [Client] one behind a [Server]. Both are a
// [Store], so code that uses one does not know which.
//
// An update is acknowledged after it is on disk, whole. A Client whose server is
// killed and started again reconnects and repeats what was not acknowledged. The
// server recognises a repeated update, so each takes effect once.
//
// Files are those of bbolt, in which a commit is atomic. The server makes one commit,
// and one sync, for all updates that wait.
package store
