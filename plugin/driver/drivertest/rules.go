package drivertest

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
		"D1":             firstFingerprint,
		"D2":             cancelFingerprints,
		"D3":             schema,
		"D4":             started,
		"D4 output":      output,
		"D4 user":        userOfTask,
		"D4 environment": environment,
		"D5":             startTwice,
		"D6":             failedStart,
		"D7":             recoverKnown,
		"D8":             relaunch,
		"D9":             endedMeanwhile,
		"D10":            twoWaiters,
		"D11":            exitCodes,
		"D12":            waitAfterExit,
		"D12 stop":       waitDuringStop,
		"D13":            graceKept,
		"D13 orderly":    orderlyStop,
		"D14":            stopEnded,
		"D15":            stopSignal,
		"D15 unknown":    unknownSignal,
		"D16":            destroyRefused,
		"D17":            destroyForced,
		"D17 children":   destroyChildren,
		"D18":            destroyed,
		"D19":            inspect,
		"D20":            optionalCalls,
		"D20 stats":      usage,
	}}
}
