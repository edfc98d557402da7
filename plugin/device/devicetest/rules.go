package devicetest

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
		"V1":           firstFingerprint,
		"V1 empty":     emptyList,
		"V1 change":    change,
		"V1 cancel":    cancelFingerprints,
		"V1 ids":       goodGroups,
		"V3":           relaunch,
		"V3 change":    sameMeaning,
		"V6":           validReservation,
		"V6 something": givesSomething,
		"V7":           unknownID,
		"V7 none":      reserveNothing,
		"V7 others":    onlyTheReserved,
		"V7 alone":     oneEach,
		"V7 repeat":    reserveAgain,
		"V7 several":   reserveSeveral,
		"V8":           statistics,
		"V9":           wrongConfig,
	}}
}
