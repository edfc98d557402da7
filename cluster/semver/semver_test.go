//race:skip one goroutine
package semver_test

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster/semver"
)

func TestMatch(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		constraint, version string
		loose, strict       bool
	}{
		{"1.2.3", "1.2.3", true, true},
		{"= 1.2.3", "v1.2.3+build.7", true, true},
		{"!= 1.2.3", "1.2.4", true, true},
		{">= 1.2.3, < 2.0.0", "1.9.0", true, true},
		{">= 1.2.3, < 2.0.0", "2.0.0", false, false},
		{"> 1.2.3", "1.2.3", false, false},
		{"<= 1.2.3", "1.2.3", true, true},
		{"> 1.9.0", "1.10.0", true, true},
		{">= 1.2.3", "1.3.0-beta1", false, true},
		{"> 1.3.0-alpha", "1.3.0-beta1", true, true},
		{"> 1.3.0-alpha.2", "1.3.0-alpha.10", true, true},
		{"> 1.3.0-9", "1.3.0-a", true, true},
		{"> 1.3.0-a", "1.3.0-a.1", true, true},
		{"> 1.3.0-alpha", "1.4.0-beta1", false, true},
		{"> 1.3.0-beta", "1.3.0", true, true},
		{">= 1.2.3", "", false, false},
		{">= 1.2.3", "latest", false, false},
	} {
		loose, err := semver.ParseLoose(test.constraint)
		must.NoError(t, err)
		must.Eq(t, test.loose, loose.Match(test.version), must.Sprintf("%q version %q", test.version, test.constraint))
		strict, err := semver.Parse(test.constraint)
		must.NoError(t, err)
		must.Eq(t, test.strict, strict.Match(test.version), must.Sprintf("%q semver %q", test.version, test.constraint))
	}
}

func TestMatch_LooseVersions(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		constraint, version string
		want                bool
	}{
		{">= 4", "6.18.3.1", true},
		{"= 1.2", "1.2.0", true},
		{"~> 1.2.3", "1.2.9", true},
		{"~> 1.2.3", "1.3.0", false},
		{"~> 1.2.3", "1.2.2", false},
		{"~> 1.2", "1.9", true},
		{"~> 1.2", "2.0", false},
		{"~> 1", "2.0", true},
		{"~> 1.2", "1.3.0-beta", false},
	} {
		c, err := semver.ParseLoose(test.constraint)
		must.NoError(t, err)
		must.Eq(t, test.want, c.Match(test.version), must.Sprintf("%q version %q", test.version, test.constraint))
	}
	must.False(t, semver.Constraints{}.Match("1.2.3"))
	c, err := semver.Parse(">= 1.2.3")
	must.NoError(t, err)
	for _, version := range []string{"1.3", "1.02.4", "1.3.0.0"} {
		must.False(t, c.Match(version), must.Sprint(version))
	}
}

func TestParse_Refuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", ">=", "1.2,", "1.x", "1.2.3-", "1.2.3-a..b", "1.2.3-ä", "-1", "1.2.3.4.5.6.7.8.9", "99999999999999999999", "=> 1"} {
		_, err := semver.ParseLoose(text)
		must.Error(t, err, must.Sprint(text))
	}
	for text, want := range map[string]string{
		"~> 1.2.3": "semantic versions have no operand ~>",
		">= 1.2":   `"1.2" is not a semantic version of three numbers`,
		">= 1.2.x": `"1.2.x" is not a version`,
	} {
		_, err := semver.Parse(text)
		must.EqError(t, err, want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(">= 1.2, < 2.0-beta.1+x", "1.2.3-rc.1")
	f.Add("~> 1.2", "v1.2")
	f.Fuzz(func(t *testing.T, constraint, version string) {
		for _, parse := range []func(string) (semver.Constraints, error){semver.Parse, semver.ParseLoose} {
			if c, err := parse(constraint); err == nil {
				c.Match(version)
			}
			if c, err := parse("!= " + version); err == nil { // the version is one
				must.False(t, c.Match(version))
			}
		}
	})
}
