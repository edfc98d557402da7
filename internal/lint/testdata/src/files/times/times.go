package times

import clock "time"

func wait() {
	clock.After(1) // want "time.After as a statement waits for nothing"
	clock.Sleep(1)
}
