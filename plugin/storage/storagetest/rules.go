package storagetest

import (
	_ "embed"

	"github.com/seed-f9cf0b39/nodedrain/plugin/conformance"
)

// rules is the document with the rules of the suite.
//
//go:embed rules.md
var rules string

// suite returns the rules with their checks.
func suite() conformance.Suite[*check] {
	return conformance.Suite[*check]{Table: rules, Checks: map[string]func(*check){
		"S1":           describes,
		"S2":           inOrder,
		"S3":           again,
		"S3 undo":      undoNothing,
		"S4":           publishBeforeStage,
		"S5":           unknownVolume,
		"S6":           busyMount,
		"S7":           twoTargets,
		"S7 read only": readOnly,
		"S8":           restarts,
		"S9":           atTheSameTime,
	}}
}
