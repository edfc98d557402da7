//go:build !race

package keeper_test

// raceDetector states that the memory of a process is not that of a user's.
const raceDetector = false
