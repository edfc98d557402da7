package times

import (
	"testing"
	"time"
)

func TestWait(t *testing.T) {
	time.Sleep(1) // want "a test sleeps outside of a synctest bubble"
	wait()
}
