// Package secret derives everything that secures a job from one [Key]: the gossip key,
// and a certificate authority. The processes of the job authenticate each other with its
// certificates when they connect.
//
// Holders of the Key are trusted completely; nobody else can join or read traffic. The
// Key itself encrypts and signs nothing. HKDF derives a separate key for each purpose
// from it. There is no authority to operate and no certificate to store: each process
// makes its own certificate when it starts, with its name and a nonce, and forgets it
// when it ends.
//
//	id, err := key.Identity("vm1/0", nonce)
//	...
//	conn := tls.Client(raw, id.Client("vm2/0", itsNonce)) // fails with ErrOtherKey or ErrOtherPeer
package secret
