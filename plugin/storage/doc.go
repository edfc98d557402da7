// Package storage speaks with storage plugins for the client of a node. A storage plugin serves the
// Container Storage Interface (CSI) 1.x on a unix socket.
//
// It turns the calls of package volume into requests, and codes of answers into classes: an answer that
// may differ the next time is transient.
package storage
