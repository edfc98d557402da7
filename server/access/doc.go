// Package access decides by bearer tokens what a request may do. A server opens its tokens file
// with [Open], and package httpapi reads the right of each request from [Tokens].
//
// # Tokens and rights
//
// A token is a secret that a request carries. It has a name and one of three rights: [Read] allows
// reads of everything except the environments and driver configurations of tasks and the secrets of
// volumes, [Write] allows reads and changes of everything, [Node] allows only registrations of
// nodes. The name is not secret. The log and the token's changes contain it.
//
// # The file
//
// A tokens file holds one token in each line: its name, its right, and the SHA-256 of its secret
// in hexadecimal. Blanks separate the words. Empty lines and the text after a # are comments:
//
//	# name     right  SHA-256 of the secret
//	ops        write  4f6d9c8b1e6f0c9c5a1f8f1b7a2d3e4c5b6a79881726354453627180918273a6
//	dashboard  read   9d3bb7f3b1c44a2b0a3c9d1f2e4b5a6c7d8e9f00112233445566778899aabbcc
//	machines   node   0c1d2e3f405162738495a6b7c8d9eafb0c1d2e3f405162738495a6b7c8d9eafb
//
// The secret is not in the file, so a stolen file is useless. One round of SHA-256 is enough
// because [Generate] draws secrets of 256 bits. It is not enough for a word that a person invented,
// so generate every secret. Anyone who can write to the file can add a token: keep its mode 0600.
// [Open] and [Tokens.Reload] warn otherwise.
//
// # What is never printed
//
// No error, log line, String, %#v or JSON of this package holds a secret, or a word of a tokens
// file except a name: the word in the place of a hash may be a secret.
package access
