// Package rowview makes a [rules.View] from plain rows. It is for a scheduler whose state is small
// enough to be read whole at each look: it filters and sorts the rows. A store with thousands of
// allocations needs indexes of its own instead. So does one whose jobs have volumes: this view is
// not a [rules.VolumeView].
package rowview
