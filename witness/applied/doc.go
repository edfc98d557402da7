// Package applied shows a [witness.Witness] the entries that an FSM of package shims applies.
// It derives the rows that an entry may have written from the entry, not from the FSM's
// answer. The witness's audit finds any other row that the FSM wrote.
package applied
