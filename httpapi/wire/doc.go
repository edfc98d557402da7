// Package wire holds the JSON shapes of the HTTP API, and how the nouns of a cluster
// become them.
package wire
