// Package alarm keeps times by key, the earliest first: when a node's deadline comes, when a
// group is planned again, when a client has work to do, when something happens in a simulation. It
// reads no clock. A step asks which keys are due at its time, and returns the first time as the one
// of the next step.
package alarm
