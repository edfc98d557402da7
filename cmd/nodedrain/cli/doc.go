// Package cli has what the commands share: their type, flags, the connection to servers, tables, questions and
// completion.
package cli
