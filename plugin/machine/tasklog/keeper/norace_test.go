//go:build !race

package keeper_test

// raceDetector says that the memory of a process is not that of a user's.
const raceDetector = false
