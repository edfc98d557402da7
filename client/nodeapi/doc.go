// Package nodeapi answers the requests that servers forward to a node: files, logs, commands in
// tasks, signals, restarts and statistics.
//
// The paths and bodies are those of the compatible HTTP API. The servers have checked the caller's
// rights and removed its token. A request arrives over the node's session (package session), on
// which this package does not depend. Package client/node serves its handler.
package nodeapi
