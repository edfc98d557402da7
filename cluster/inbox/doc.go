// Package inbox keeps items that other goroutines post, until the next step of a step machine takes
// them.
package inbox
