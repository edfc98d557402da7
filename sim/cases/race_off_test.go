//go:build !race

package cases_test

// raceEnabled means that the race detector is on, which makes everything several
// times slower.
const raceEnabled = false
