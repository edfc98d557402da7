// Package swarm makes scenarios from seeds and plays many of them.
package swarm
