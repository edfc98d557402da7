package good

import "time"

func wait() { <-time.After(1) }
