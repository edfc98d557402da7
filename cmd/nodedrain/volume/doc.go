// Package volume has the commands about volumes.
package volume
