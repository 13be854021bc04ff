// Package tcp carries collective messages over TCP.
//
// A [Link] is one framed connection between two processes that have told each
// other who they are. A [Transport] is made of the Links of one View: every
// pair of ranks has two, a bulk Link for payloads, which is read only by who
// asked for a message, and a control Link for heartbeats, aborts and goodbyes,
// which is always read. So news of a failure never waits behind data, and data
// nobody asked for stays in the socket. With Gate.Streams there are more bulk
// Links, and large messages travel over them in stripes, all at once. The end of
// any of them is the end of the peer.
//
// A handshake has three parts: the dialler's hello, the answer, and the dialler's
// word that it uses the Link. A dialler may give up before that word and dial
// again, and does so until its time is up, for any reason that may pass. What
// waiting cannot change ends it at once: another key, job, epoch, View or version,
// another process at the address, or none.
//
// With a key (Identity.Secret) every Link is under TLS 1.3 in both directions:
// both sides prove that they have the key and who they are before they say
// anything else. Without a key Links are neither encrypted nor authenticated:
// whoever reaches the port and knows the cluster's name can join in. Use them
// so on loopback or on a network that is trusted.
package tcp
