// Package modules tests what the modules of this repository add to an embedder's module. It
// makes the module of an embedder in an empty folder and asks the go command.
package modules
