package client

// MarkAll makes the next step of a core visit all allocations.
func MarkAll(c *Core) { c.visiting.all() }

// Visits returns how often steps of a core have visited an allocation or a volume.
func Visits(c *Core) int { return c.visiting.count + c.volumes.Visits() }
