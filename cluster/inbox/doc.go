// Package inbox keeps items that other goroutines post, until a step machine takes them.
package inbox
