// Package rowview builds a [rules.View] from plain rows. It filters and sorts all rows for each
// view, so it suits a scheduler with a small state. A store with thousands of allocations needs its
// own indexes. A store whose jobs have volumes needs another view, because this one does not
// implement [rules.VolumeView]. A scheduler that places replacements beside what they replace calls
// [View.WithStandbys].
package rowview
