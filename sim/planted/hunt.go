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
	// Control is the hunter without a bug, see [Control], or empty: a seed that fails
	// it too says nothing of a bug, and the hunt goes on behind it.
	Control string
	// GiveUp ends the hunt at the first start from which the bug is not found.
	GiveUp bool
}

// MaxSeeds is within how many small seeds a bug has to be found.
const MaxSeeds = 10_000

// hunter is the command that plays seeds.
const hunter = "./sim/planted/hunt"

// Control builds the hunter without a bug below dir. root is the top of the
// repository.
func Control(ctx context.Context, root, dir string) (binary string, err error) {
	return build(ctx, root, dir, hunter)
}

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
	binary, err := b.Build(ctx, root, dir, hunter)
	if err != nil {
		return nil, err
	}
	var catches []Catch
	for _, first := range h.Starts {
		c, err := h.from(ctx, binary, first)
		if err != nil {
			return nil, fmt.Errorf("hunting %s: %w", b.Name, err)
		}
		catches = append(catches, c)
		if h.GiveUp && c.Check == "" {
			break
		}
	}
	return catches, nil
}

// from hunts from a seed on.
func (h Hunt) from(ctx context.Context, binary string, first uint64) (Catch, error) {
	played := 0
	for {
		c, err := play(ctx, binary, first+uint64(played), h.Seeds-played, h.Patience)
		c.Seeds += played
		if err != nil || c.Check == "" || h.Control == "" {
			return c, err
		}
		control, err := play(ctx, h.Control, c.Seed, 1, 0)
		if err != nil || control.Check == "" {
			return c, err
		}
		if played = c.Seeds; played == h.Seeds {
			return Catch{Seeds: played}, nil
		}
	}
}

// play has a hunter play seeds until one fails.
func play(ctx context.Context, binary string, first uint64, seeds int, patience time.Duration) (c Catch, err error) {
	hunt := exec.CommandContext(ctx, binary,
		"-first", strconv.FormatUint(first, 10), "-seeds", strconv.Itoa(seeds), "-patience", patience.String())
	output, err := hunt.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%w\n%s", err, exit.Stderr)
	}
	if err == nil {
		err = json.Unmarshal(output, &c)
	}
	return c, err
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
