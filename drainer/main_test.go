package drainer

import (
	"flag"
	"os"
	"testing"
)

// TestMain has every property tried on as many random worlds as checks says,
// unless the command line or the environment of rapid does.
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
