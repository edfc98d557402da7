// Package e2e tests whole clusters: three server processes on loopback, with real sockets and
// disks, clients of their nodes, and an operator. The tests kill, cut off and pause servers, and
// check the result from outside.
//
// It holds tests only. The servers are this package's own test binary, started as other
// processes; see child_test.go.
//
//	go test ./internal/e2e                                   short, as in continuous integration
//	NODEDRAIN_E2E_ROUNDS=10 go test ./internal/e2e -v        as long as ten rounds of trouble take
//	go test ./internal/e2e -run RollingRestart -count 20 -v  restarts under a watched drain, twenty times
//	NODEDRAIN_E2E_KILLS=20 go test ./internal/e2e -run TestNode_ -v -timeout 30m
//	                                                nodes whose client is killed in a drain, twenty times,
//	                                                and all cases of clients that are away in a drain
package e2e
