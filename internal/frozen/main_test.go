//race:skip it stops one process
package frozen_test

import (
	"testing"

	"github.com/seed-f9cf0b39/nodedrain/internal/freshmachine"
)

func TestMain(m *testing.M) {
	freshmachine.Enter()
	m.Run()
}
