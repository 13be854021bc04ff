// Package secret makes everything that secures a job from one [Key]: the key
// of the gossip, and a certificate authority whose certificates the processes
// of the job show each other when they connect.
//
// Who holds the Key is trusted with everything, who does not hold it gets
// nowhere. The Key itself encrypts and signs nothing: what does is derived
// from it by HKDF, each under a name of its own. There is no authority to run
// and no certificate to store. Each start of a process makes its own, which
// says who it is, and forgets it when it ends:
//
//	id, err := key.Identity("vm1/0", nonce)
//	...
//	conn := tls.Client(raw, id.Client("vm2/0", itsNonce)) // fails with ErrOtherKey or ErrOtherPeer
package secret
