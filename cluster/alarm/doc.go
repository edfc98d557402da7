// Package alarm keeps times by key, the earliest first: when a node's deadline
// comes, when a group is planned again, when a client has something to do. It
// knows no clock. Whoever steps asks what is due at the time of the step, and
// returns the first time as the one at which to be called again.
package alarm
