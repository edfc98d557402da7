// Package client speaks to the HTTP API of package httpapi: what the nodedrain command
// asks and writes goes through it. The shapes are those of package wire.
//
// A [Client] is made from a [Config], and a Config from the environment variables that the
// compatible command reads ([FromEnv]). All calls take a context and end with it. A call
// that is not answered 200 fails with an [*Error], which holds what the server said; any
// other error says that there was no answer, or none that can be read.
//
// Reads can wait: a [Query] with the index of the last answer is answered when there is
// something newer, or when its wait is over. Loops over such reads wait [Pause] between
// answers that are errors; the client itself repeats nothing.
package client
