// Package opinion judges single rows of the state by the contract, a second time.
//
// What it says of an allocation, a node or a drain repeats on purpose what the
// nouns in cluster and the drainer say for themselves: an opinion formed by the
// same code would be none. It reads the fields of the nouns and never their
// judging methods. The witness and the simulator's judges count with it.
//
// All functions are pure. Damaged rows, such as an allocation without a job, get
// the most careful answer.
package opinion
