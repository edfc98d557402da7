// Package datadir manages the data directory of a server: raft's log and snapshots, the server's
// identity, and the record that detects the loss of log entries.
//
//	LOCK              locked while a process uses the directory
//	name              the server's name, which never changes
//	cluster           the id of its cluster
//	promise           the server whose new cluster this one has promised to join
//	member            the record: the last term, vote and index of a member of a cluster
//	restoring         exists while the server replaces the state of the cluster by a saved one
//	raft/log.db       raft's log, term and vote (hashicorp/raft-boltdb)
//	raft/snapshots/   the last three snapshots of the state
//	snapshot-*.tmp    a state that is saved or restored now. Open removes those that a crash has left
//	discarded-TIME/   the files that [Discard] has moved
//
// # The record
//
// A server votes for a leader whose log is at least as long as its own. A server that has lost
// entries would vote for a leader without them, and acknowledged writes would be gone. So the
// file member holds, outside of the log, the highest term and vote and the last index that this
// server has acknowledged, with its name and its cluster. [Open] refuses a log that is behind the
// record. The package syncs terms and votes to the disk. It writes the index with each append and
// does not sync it: a power failure may lose the index of the last seconds, a killed process does
// not.
//
// The record does not detect the loss of a whole directory, a whole directory that was restored
// from an older copy, or, after a power failure, the loss of only the entries of the last seconds.
// A directory of a build without the record gets one at the first start.
//
// # Damage
//
// The log keeps a checksum with each entry. [Open] reads every page and every entry of the log,
// and the newest snapshot, before raft does. For damage it returns an error that wraps [ErrUnsafe]
// and names the file and the remedy. Entries of a build without checksums are only decoded.
package datadir
