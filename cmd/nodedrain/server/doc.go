// Package server runs a server, and has the commands about servers and tokens.
package server
