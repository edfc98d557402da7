// Package datacopy copies the data of an ephemeral disk from the node of an ended allocation to the
// node of its replacement.
//
// [Send] reads folders and writes a stream. A [Receiver] reads the stream and writes the folders
// below a folder that no task sees. After a lost connection the receiver continues at its
// [Position], with a new stream from there.
//
// # Stream
//
// The stream is a tar archive in frames. A frame is the length of its content, the CRC-32C of the
// content, both as 32 bits in big-endian order, and the content of at most 256 KiB. A frame without
// content ends the stream, so a stream that was cut is never complete.
//
// The archive has the entries in the order of their paths, each folder before its content. A path
// begins with the name of its folder, such as "alloc/data". A file that is large or has holes is
// several entries with one path. Their records state where the bytes belong in the file, and the
// size of the file:
//
//	NODEDRAIN.offset   decimal
//	NODEDRAIN.size     decimal
//
// A global header before the end states how many special files were left out, or the error that
// ended the reading of the folders:
//
//	NODEDRAIN.skipped  decimal
//	NODEDRAIN.error    text
//
// # What is kept
//
// Names as bytes, contents, holes of at least 64 KiB, permissions, times of change in seconds, and
// hard links and symbolic links as links. No link is followed. The owner of a file is sent as the
// name of a user of the tasks, and set if the replacement has a task of that user. Not kept are
// extended attributes and the bits setuid and setgid. FIFOs, sockets and devices are left out and
// counted.
package datacopy
