// Package modules tests which modules an embedder of this repository gets. It creates an embedder's
// module in an empty folder and runs the go command there.
package modules
