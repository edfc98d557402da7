package timeline

import "time"

// area draws how many allocations of a node were in each phase, one upon the other:
// what leaves last at the bottom.
func (s *svg) area(n *node, height int) {
	order := [...]Phase{Running, Starting, Unhealthy, Away, Marked, Stopping}
	counts := s.phases(n)
	whole := 1
	for _, at := range counts {
		sum := 0
		for _, c := range at {
			sum += c
		}
		whole = max(whole, sum)
	}
	for x := 0; x < len(counts); {
		same := x + 1
		for same < len(counts) && counts[same] == counts[x] {
			same++
		}
		below := 0
		for _, p := range order {
			from, to := height*below/whole, height*(below+counts[x][p])/whole
			if below += counts[x][p]; to > from {
				s.rect(p.String(), svgLeft+x, s.y+height-to, same-x, to-from, "")
			}
		}
		x = same
	}
}

// phases counts the allocations of a node by phase, for each column.
func (s *svg) phases(n *node) [][PhaseCount]int {
	changes := make([][PhaseCount]int, s.scale.width+1)
	for _, w := range n.rows {
		for i, c := range w.changes {
			end := until(w.changes, i, func(c change) time.Duration { return c.at }, s.scale.end)
			changes[s.scale.x(c.at)][c.phase]++
			changes[s.scale.x(end)][c.phase]--
		}
	}
	counts := changes[:s.scale.width]
	for x := 1; x < len(counts); x++ {
		for p := range counts[x] {
			counts[x][p] += counts[x-1][p]
		}
	}
	return counts
}
