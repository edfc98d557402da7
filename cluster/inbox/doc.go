// Package inbox holds what other goroutines post to a step machine until its next step.
package inbox
