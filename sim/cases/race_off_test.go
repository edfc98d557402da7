//go:build !race

package cases_test

// raceEnabled says that the race detector is on, which makes everything several
// times slower.
const raceEnabled = false
