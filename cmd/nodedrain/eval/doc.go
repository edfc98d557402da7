// Package eval shows evaluations, and waits for them.
package eval
