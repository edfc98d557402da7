// Package scenario is the language of simulations: .drain files.
package scenario
