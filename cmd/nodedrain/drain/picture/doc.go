// Package picture draws the journal of one drain, as text for a terminal and as an SVG. "nodedrain drain show" uses it.
//
// The times of a picture begin with the drain. A row shows the events of one kind, or one stage. A lane shows one group:
// it begins when the group first had its lowest number of healthy allocations, and is as long as the group had this
// number in all. The journal does not state the other times of a group.
package picture
