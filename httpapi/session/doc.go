// Package session lets the servers reach the client of a node, which may be behind a firewall and
// listens on no address for them.
//
// The client dials a server's HTTP API with a GET request for the protocol [Protocol]
// (Upgrade). After the answer 101 the connection carries yamux. Only the server opens streams. Each
// stream carries one HTTP/1.1 request of the server and the node's answer, or, after another 101, the
// bytes of an interactive command.
//
// [Dial] and [NodeEnd] are the node's end: it serves an [http.Handler]. [Accept] and [ServerEnd] are the
// server's end: an [http.RoundTripper].
//
// Both ends ping each other every [pingInterval]. If one end is silent, the session ends within 25
// seconds, with all its streams. A stream that has no reader fills its window of 256 KiB and stops
// there; other streams continue. It is cut when no byte has moved for a minute. At most
// [MaxStreams] streams are open at a time. A frame that is longer than the window, and too many pings, are
// protocol errors: they end the session.
//
// A version is in the name of the protocol. A server that does not have the version answers 426 with the
// one that it has. An older server answers 501. [Refused] carries both to the caller.
package session
