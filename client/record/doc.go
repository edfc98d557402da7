// Package record keeps the durable records of a client. A record states what the next client must
// undo if this one dies. The client writes it before the effect, and deletes it when the effect is
// certainly undone.
//
// A [Store] holds records by key. [Disk] keeps each in a file of its own, and writes it with one
// change: a temporary file, fsync, rename, fsync of the folder. When a write or a deletion returns nil,
// it survives the loss of power. [Table] gives the records of one kind a Go type.
//
// A file begins with a line of fixed form: its name for humans, the version of the format, and a
// checksum of all other bytes. A file that is cut short or changed does not match its checksum. It is
// set aside, and reported as [Damaged] at each start until [Store.Discard]. The owner first destroys what the
// record was about: the key follows from the file's name, which is the encoded key of package
// pathname. A record of a newer format stops the start with [ErrNewer]: an older client must not
// ignore what a newer one left.
//
// One process at a time uses a folder of records. [Lock] refuses a second one.
package record
