//race:skip one goroutine
package driver_test

import (
	"math"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// A limit that an older server accepted does not become negative, or none, in bytes.
func TestResources_MemoryBytes(t *testing.T) {
	t.Parallel()
	must.Eq(t, 64<<20, driver.Resources{MemoryMB: 64}.MemoryBytes())
	must.Eq(t, math.MaxInt64>>20<<20, driver.Resources{MemoryMB: math.MaxInt64}.MemoryBytes())
	must.Zero(t, driver.Resources{}.MemoryBytes())
	must.Eq(t, 256<<20, driver.Resources{MemoryMB: 64, MemoryMaxMB: 256}.MemoryBytes())
	must.Zero(t, driver.Resources{MemoryMB: 64, MemoryMaxMB: -1}.MemoryBytes())
}

// Only a task that may use more than its memory has a part of it protected.
func TestResources_MemoryLowBytes(t *testing.T) {
	t.Parallel()
	must.Eq(t, 64<<20, driver.Resources{MemoryMB: 64, MemoryMaxMB: 256}.MemoryLowBytes())
	must.Eq(t, 64<<20, driver.Resources{MemoryMB: 64, MemoryMaxMB: -1}.MemoryLowBytes())
	must.Zero(t, driver.Resources{MemoryMB: 64, MemoryMaxMB: 64}.MemoryLowBytes())
	must.Zero(t, driver.Resources{MemoryMB: 64}.MemoryLowBytes())
}
