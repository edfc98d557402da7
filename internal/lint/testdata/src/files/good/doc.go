// Package good is a fixture: a package in which nothing is wrong.
package good
