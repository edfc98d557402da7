// Package rowview makes a [rules.View] from plain rows, for a scheduler whose state is small
// enough to be read whole at each look: it filters and sorts, so that the scheduler does not
// have to. A store with thousands of allocations wants indexes of its own instead.
package rowview
