package good

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestWait(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		time.Sleep(1)
		wait()
	})
}
