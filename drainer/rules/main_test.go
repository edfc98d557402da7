//race:skip one goroutine
package rules

import (
	"os"
	"testing"

	"github.com/seed-f9cf0b39/nodedrain/drainer/internal/fixture"
)

func TestMain(m *testing.M) { os.Exit(fixture.RunTests(m)) }
