package cases_test

import (
	"runtime"
	"testing"
)

// TestMain has garbage wait until there is some. The worlds of small stories take a few
// MB and are told by the thousand: to collect after each of them would take a fifth of
// the time. The ballast is never touched: it takes addresses, but no memory.
func TestMain(m *testing.M) {
	ballast := make([]byte, 100<<20)
	m.Run()
	runtime.KeepAlive(ballast)
}
