// Package datadir is the data directory of a server: raft's log and its snapshots, the server's
// identity, and the record that protects the cluster from a server that has lost its log.
//
//	LOCK              locked while a process uses the directory
//	name              the server's name, for good
//	cluster           the id of its cluster
//	promise           the server with which it has promised to begin a cluster
//	member            the record: this server is a member, and how far its log has come
//	raft/log.db       raft's log and its vote (hashicorp/raft-boltdb)
//	raft/snapshots/   the last three snapshots of the state
//	discarded-TIME/   what [Discard] has put aside
//
// # The record
//
// A server votes for a leader whose log is at least as long as its own. A server that has lost
// entries would vote for a leader without them, and acknowledged writes would be gone. So the
// file member holds, outside of the log, the highest term and vote and the last index that this
// server has acknowledged, with its name and its cluster. [Open] refuses a log that is behind the
// record. Terms and votes are synced to the disk. The index is written with each append and not
// synced: a killed process loses nothing of it, a loss of power some seconds.
//
// The record does not detect the loss of a whole directory, a directory that was restored whole
// from an older copy, or, after a loss of power, the loss of entries of the last seconds alone.
// A directory of a build without the record gets one at its first start.
//
// # Damage
//
// The log keeps a checksum with each entry. [Open] reads every page and every entry of the log,
// and the newest snapshot, before raft does. An error wraps [ErrUnsafe], and names the file and
// the remedy. Entries of a build without checksums are only decoded.
package datadir
