//race:skip one goroutine
package cases_test

import (
	"runtime"
	"testing"
)

// TestMain reduces the number of garbage collections. The worlds of small cases take a few MB, and
// the tests play thousands: collections after each would take a fifth of the time. The ballast is
// never touched: it takes addresses, but no memory.
func TestMain(m *testing.M) {
	ballast := make([]byte, 100<<20)
	m.Run()
	runtime.KeepAlive(ballast)
}
