// Package opinion judges single rows of the state by the contract, a second time.
//
// It repeats on purpose the judgments of package cluster and of the drainer: a judgment of the same
// code would not be independent. It reads the fields of the rows and never their judging methods.
// The witness and the simulator's judges count with it.
//
// All functions are pure. Damaged rows, such as an allocation without a job, get the most
// careful answer.
package opinion
