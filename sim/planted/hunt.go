package planted

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"time"
)

// Catch is what a hunt for one bug from one seed on came to.
type Catch struct {
	// Seeds is how many were played, the one that failed included.
	Seeds int
	// Seed is the one that failed, Check what it failed, as "G1 below limit", and Text
	// what was wrong in words. All are empty if none failed.
	Seed  uint64
	Check string
	Text  string
	// Events is how many are left of its scenario when it has been shrunk, and
	// Scenario what is left. Both are zero if it was not shrunk.
	Events   int
	Scenario string
}

// Hunt says how a bug is looked for. Zero values are its defaults.
type Hunt struct {
	// Starts are the seeds to start from, each far from the others. Nil is
	// [Starts].
	Starts []uint64
	// Seeds is how many are played from each start at most. Zero is [MaxSeeds].
	Seeds int
	// Patience is how long a scenario is shrunk. Zero is a minute.
	Patience time.Duration
}

// MaxSeeds is within how many small seeds a bug has to be found.
const MaxSeeds = 10_000

// Starts are the seeds to start from.
func Starts() []uint64 { return []uint64{1, 1_000_001, 2_000_001} }

func (h Hunt) withDefaults() Hunt {
	if h.Starts == nil {
		h.Starts = Starts()
	}
	if h.Seeds == 0 {
		h.Seeds = MaxSeeds
	}
	if h.Patience == 0 {
		h.Patience = time.Minute
	}
	return h
}

// For looks for a bug and returns what each start came to.
func (h Hunt) For(ctx context.Context, root, dir string, b *Bug) ([]Catch, error) {
	h = h.withDefaults()
	binary, err := b.Build(ctx, root, dir, "./sim/planted/hunt")
	if err != nil {
		return nil, err
	}
	var catches []Catch
	for _, first := range h.Starts {
		hunt := exec.CommandContext(ctx, binary,
			"-first", strconv.FormatUint(first, 10), "-seeds", strconv.Itoa(h.Seeds), "-patience", h.Patience.String())
		output, err := hunt.Output()
		if err != nil {
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				err = fmt.Errorf("%w\n%s", err, exit.Stderr)
			}
			return nil, fmt.Errorf("hunting %s: %w", b.Name, err)
		}
		var c Catch
		if err := json.Unmarshal(output, &c); err != nil {
			return nil, fmt.Errorf("hunting %s: %w", b.Name, err)
		}
		catches = append(catches, c)
	}
	return catches, nil
}

// Note writes down in the row what a hunt came to.
func (r *Row) Note(catches []Catch) {
	r.Found, r.Starts, r.Seeds, r.Ops, r.Invariant = 0, len(catches), 0, 0, Hides
	counts := map[string]int{}
	var seeds []int
	for _, c := range catches {
		seeds = append(seeds, c.Seeds)
		if c.Check == "" {
			continue
		}
		r.Found++
		if counts[c.Check]++; r.Invariant == Hides || counts[c.Check] > counts[r.Invariant] {
			r.Invariant = c.Check
		}
		if c.Events > 0 && (r.Ops == 0 || c.Events < r.Ops) {
			r.Ops = c.Events
		}
	}
	if len(seeds) > 0 {
		slices.Sort(seeds)
		r.Seeds = seeds[len(seeds)/2]
	}
}
