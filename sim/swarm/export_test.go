package swarm

// Traits are the names of what a scenario may have.
func Traits() []string {
	var names []string
	for _, t := range traits() {
		names = append(names, string(t))
	}
	return names
}
