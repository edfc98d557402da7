// Package twodocs says it again.
package twodocs // want "the package comment belongs into doc.go"
