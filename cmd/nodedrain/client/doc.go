// Package client has the commands that run the client of a node and simulate clients.
package client
