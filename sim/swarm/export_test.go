package swarm

// Traits returns the names of all traits.
func Traits() []string {
	var names []string
	for _, t := range traits() {
		names = append(names, string(t))
	}
	return names
}
