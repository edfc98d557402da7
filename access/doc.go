// Package access knows who may do what by bearer tokens.
//
// # Tokens and rights
//
// A token is a secret that a request carries, and it has a name and one of two
// rights: [Read] sees everything, [Write] may change it too. The name is no
// secret: it stands in the log and in what its bearer has changed.
//
// # The file
//
// A tokens file holds one token a line: its name, its right, and the SHA-256 of its
// secret in hexadecimal. Words are separated by blanks, empty lines and what follows
// a # are comments:
//
//	# who      may    SHA-256 of the secret
//	ops        write  4f6d9c8b1e6f0c9c5a1f8f1b7a2d3e4c5b6a79881726354453627180918273a6
//	dashboard  read   9d3bb7f3b1c44a2b0a3c9d1f2e4b5a6c7d8e9f00112233445566778899aabbcc
//
// The secret itself is nowhere but with its bearer, so that the file tells a thief
// nothing that opens the door. One round of SHA-256 is enough for that because
// [Generate] draws secrets of 256 bits; it would not be for a word that somebody made
// up, so generate them all. Who can write to the file can add themselves to it: keep
// it 0600. [Open] and [Tokens.Reload] warn when it is not.
//
// # What is never said
//
// No error, log line, String, %#v or JSON of this package holds a secret, nor a word
// of a tokens file other than a name: what stands where a hash should be may well be
// a secret that somebody took for one.
package access
