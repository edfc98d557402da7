// Package csi calls storage plugins for the client of a node. A storage plugin serves the
// Container Storage Interface (CSI) 1.x on a unix socket.
//
// It converts the calls of package volume to requests, and gRPC codes to error classes. An error is
// transient if a retry may succeed.
package csi
