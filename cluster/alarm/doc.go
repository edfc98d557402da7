// Package alarm keeps a time for each key, the earliest first: the deadline of a node, the next
// plan of a group, the next work of a client, the next event of a simulation. Step machines use it.
// It reads no clock: a step takes the keys that are due at its time, and returns the first time as the
// time of the next step.
package alarm
