// Package twodocs is a fixture: it says what it is twice.
package twodocs
