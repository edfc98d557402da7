//go:build !race

package rawexec_test

const raceEnabled = false
