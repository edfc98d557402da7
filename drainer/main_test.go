package drainer

import (
	"flag"
	"os"
	"testing"
)

// checks is how many random worlds a property is tried on, unless the command
// line or the environment of rapid says otherwise.
const checks = "2000"

func TestMain(m *testing.M) {
	flag.Parse()
	_, chosen := os.LookupEnv("RAPID_CHECKS")
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "rapid.checks" })
	if !chosen {
		if err := flag.Set("rapid.checks", checks); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
