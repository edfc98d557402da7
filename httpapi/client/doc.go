// Package client calls the HTTP API of package httpapi. The nodedrain command uses it for all its
// requests. The shapes are those of package wire.
//
// A [Client] is made from a [Config], and a Config from the environment variables that the
// compatible command reads ([FromEnv]). All calls take a context and end with it. A call that is
// not answered 200 fails with an [*Error], which holds the server's text. Any other error means
// that there was no answer, or an unreadable one.
//
// Reads can wait: a [Query] with the index of the last answer is answered when there is a newer
// index, or when its wait is over. Loops over such reads wait [Pause] after a failed one; the
// client itself repeats nothing.
package client
