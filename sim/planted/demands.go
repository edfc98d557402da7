package planted

import (
	"errors"
	"fmt"
)

// Demands are what a catalog of planted bugs and its table have to come up to, to say
// anything of a simulator. The zero value asks for nothing.
type Demands struct {
	// Bugs is how many there are at least, Each how many break each of the guarantees
	// Of before any other.
	Bugs, Each int
	Of         []Guarantee
	// Survivors is how many of them no ordinary test finds. If some have to, the tests
	// have been run against each.
	Survivors int
	// Seeds is within how many each is found, in the median of its starts, and Starts
	// from how many it is hunted at least.
	Seeds, Starts int
	// TestsOnly is how many at most are found by an ordinary test and by no seed.
	TestsOnly int
	// Of those that were shrunk Share, in hundredths, have at most Ops operations left.
	Ops, Share int
}

// Required is what the bugs of this repository have to come up to.
func Required() Demands {
	return Demands{
		Bugs: 25, Each: 2, Of: Guarantees()[:8], Survivors: 10,
		Seeds: MaxSeeds, Starts: len(Starts()), TestsOnly: 12, Ops: 10, Share: 90,
	}
}

// Unmet says what of the demands a table does not meet, all of it. Nil is that it
// meets them. That it has a row for each bug is for [Table.Match] to see to.
func (d Demands) Unmet(t Table) error {
	var unmet []error
	miss := func(format string, args ...any) { unmet = append(unmet, fmt.Errorf(format, args...)) }
	breaking := map[Guarantee]int{}
	survivors, shrunk, small, testsOnly := 0, 0, 0, 0
	for _, r := range t {
		if len(r.Breaks) > 0 {
			breaking[r.Breaks[0]]++
		}
		if r.Test == Survives {
			survivors++
		}
		if r.Ops > 0 {
			shrunk++
		}
		if r.Ops > 0 && r.Ops <= d.Ops {
			small++
		}
		if d.Survivors > 0 && r.Test == "" {
			miss("the ordinary tests have not been run against %s", r.Bug)
		}
		switch err := d.unfound(r); {
		case err != nil && r.onlyByTest():
			testsOnly++
		case err != nil:
			unmet = append(unmet, err)
		}
	}
	if testsOnly > d.TestsOnly {
		miss("%d bugs are found by an ordinary test and by no seed, and %d are allowed", testsOnly, d.TestsOnly)
	}
	if len(t) < d.Bugs {
		miss("%d bugs, and %d are asked for", len(t), d.Bugs)
	}
	for _, g := range d.Of {
		if breaking[g] < d.Each {
			miss("%d bugs break %s before others, and %d are asked for", breaking[g], g, d.Each)
		}
	}
	if survivors < d.Survivors {
		miss("%d bugs survive the ordinary tests, and %d are asked for", survivors, d.Survivors)
	}
	if 100*small < d.Share*max(1, shrunk) {
		miss("%d of the %d bugs whose scenario was shrunk have at most %d operations, and %d %% are asked for", small, shrunk, d.Ops, d.Share)
	}
	return errors.Join(unmet...)
}

// onlyByTest reports whether the bug was hunted and no seed found it, but an ordinary test
// did.
func (r Row) onlyByTest() bool {
	return r.Starts > 0 && r.Found == 0 && r.Test != "" && r.Test != Survives
}

// unfound says why a bug does not count as found, or nil. The median of one that was found
// from half of the starts or fewer is not known.
func (d Demands) unfound(r Row) error {
	switch {
	case d.Seeds == 0:
		return nil
	case r.Starts == 0:
		return fmt.Errorf("%s has not been hunted", r.Bug)
	case r.Starts < d.Starts:
		return fmt.Errorf("%s was hunted from %d of %d starts", r.Bug, r.Starts, d.Starts)
	case 2*r.Found <= r.Starts:
		return fmt.Errorf("%s was found from %d of %d starts", r.Bug, r.Found, r.Starts)
	case r.Seeds > d.Seeds:
		return fmt.Errorf("%s takes %d seeds, and %d are allowed", r.Bug, r.Seeds, d.Seeds)
	}
	return nil
}
