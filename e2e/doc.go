// Package e2e plays whole clusters: three server processes on loopback, with real
// sockets and disks, clients of their nodes, and an operator. Servers are killed, cut off
// from each other and stopped in their tracks meanwhile, and what comes of it is checked
// from outside.
//
// It holds nothing but tests. The servers are this package's own test binary, begun
// again as another process; see child_test.go.
//
//	go test ./e2e                                   short, as in continuous integration
//	NODEDRAIN_E2E_ROUNDS=10 go test ./e2e -v        as long as ten rounds of trouble take
package e2e
