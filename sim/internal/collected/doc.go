// Package collected checks the collection of ended work in a simulated world. A [Judge] reads the
// rows of the state before and after each entry that deletes rows. It shares no code with the
// packages collect and scheduler. For slots it uses the rules of package placement.
//
// The guarantee is S2. An entry deletes nothing that is of use:
//
//   - It changes and deletes no row that it does not name, and its answer names what it deleted.
//     The last evaluation of a deleted job goes with the job. All rows of a finished batch job go
//     with it.
//   - Each deleted row had its last write before the time that the entry names.
//   - A deleted allocation had ended. No running drain had marked it. It was not a canary whose
//     replacement lives. No client may come back and still run it. It claimed no volume.
//     No record of a drain of an existing node counts it as unconfirmed.
//   - The group of a deleted allocation has the same allocations in slots as before, counts the
//     same failures in a row, and needs the same replacements. So no plan places more or fewer
//     allocations because of the entry.
//   - A deleted evaluation was closed. The blocked evaluation that it created was not open, no
//     allocation names it, and its job keeps an evaluation.
//   - A deleted job had no open evaluation. It was stopped and had no allocation, or it was a batch
//     job whose allocations all had ended, and no client or drain needed them.
//
// The collection also completes: when the state has not changed during three searches of the leader
// and no fault was active, no ended row without a use is left.
package collected
