// Package times is a fixture: it waits in wrong ways.
package times
