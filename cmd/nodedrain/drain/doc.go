// Package drain lists drains and monitors them.
package drain
