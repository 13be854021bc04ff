// Package tcp carries collective messages over TCP.
//
// A [Link] is one framed connection between two processes that have told each
// other who they are. A [Transport] is made of the Links of one View: every
// pair of ranks has two, a bulk Link for payloads, which is read only by who
// asked for a message, and a control Link for heartbeats, aborts and goodbyes,
// which is always read. So news of a failure never waits behind data, and data
// nobody asked for stays in the socket.
//
// Links are neither encrypted nor authenticated: whoever reaches the port and
// knows the cluster's name can join in. Use them on loopback or on a network
// that is trusted.
package tcp
