// Package applied shows a [witness.Witness] what an FSM of package shims applies.
// It names what each entry may have written by the entry's own words, not by the
// FSM's answer: what the FSM writes beyond them, the witness's audit finds.
package applied
