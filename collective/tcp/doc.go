// Package tcp carries collective messages over TCP.
//
// Two ranks of a [collective.View] are connected by several [Link]s. Each is one TCP
// connection that has completed a handshake:
//
//   - The control Link carries heartbeats, reports of failures, and goodbyes. It is always
//     read, so news of a failure never waits behind data.
//   - A bulk Link carries messages. It is read only by Recv, and headers by
//     Abilities.Next, so a message waits in the socket until this rank asks for it. With Connector.Streams there are several, the
//     streams, and a long message is cut into stripes that travel in parallel.
//
// If any of them ends without a goodbye, the peer is lost.
//
// # Connecting
//
// A [Listener] accepts connections. A [Connector] is its [Handler], and keeps the Links
// that peers dial until Connector.Connect needs them. Connect dials the other Links
// (dialer) and returns a [Transport].
//
// A handshake has three parts: the dialler's hello, the answer, and the dialler's
// confirmation. Until it confirms, a dialler may give up and dial again. It does so until
// its time is up, if the reason may pass. Some reasons cannot: a different key, job,
// epoch, View or version, a different process at the address, or no process at all.
//
// # The path of a message
//
// On Linux, without TLS:
//
//  1. Transport.Send calls Post and Flush. An engine calls them itself, because Post may
//     return before the message has left.
//  2. Post cuts the message into stripes, makes each an outgoing with its own iovecs, and
//     adds it to the queue of a socket (sendqueue.Queues).
//  3. The poller writes the queues with writev. What a socket does not accept stays in its
//     queue until a later Post, Recv or Flush.
//  4. On the other rank, Transport.Recv expects a header and its payload. The poller reads
//     both with readv, from one socket per stripe, into the caller's memory, and compares
//     the header.
//
// With TLS, and on other systems, there are no sockets or queues. Send writes the first
// stripe to a Link itself, and one streamWorker per further stream writes the others. Under
// TLS, Link.writeRecords joins short parts into full records. Recv reads in the same way.
//
// Messages of no call are read in two parts. Abilities.Next polls the sockets of all peers,
// or starts a goroutine for each Link, and reads a header without its payload. Recv then
// continues from there.
//
// # Failures
//
// The monitor of a Transport reads the control Links and sends heartbeats. The first cause
// that it learns of breaks the Transport: it reports the cause to every peer and
// interrupts all calls.
//
// # Security
//
// With a key (Identity.Secret), every Link uses TLS 1.3. Each side proves that it has the
// key and who it is before it says anything else. Without a key, Links are neither
// encrypted nor authenticated: any process that can reach the port and knows the name
// of the cluster can join. Use them only on loopback or on a trusted network.
package tcp
