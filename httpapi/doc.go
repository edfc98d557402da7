// Package httpapi is the HTTP API of a cluster with a node drainer: handlers over small
// interfaces, which the nomad command and its Go client can drive.
package httpapi
