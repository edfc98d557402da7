package sim

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/sim/swarm"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// swarmReport is the output of "nodedrain sim swarm -json".
type swarmReport struct {
	Version int `json:"version"`
	// OK means that all requested seeds were played, none failed, and no event was too
	// rare.
	OK   bool   `json:"ok"`
	Size string `json:"size"`
	// First is the first seed, Requested the requested number of seeds, Seeds the number
	// played. Interrupted means that Seeds is below Requested. PlayedTwice
	// counts the seeds played twice.
	First       uint64 `json:"first"`
	Requested   int    `json:"asked"`
	Interrupted bool   `json:"interrupted"`
	Seeds       int    `json:"seeds"`
	PlayedTwice int    `json:"played_twice"`
	Workers     int    `json:"workers"`

	Seconds            float64 `json:"seconds"`
	SeedsPerMinute     float64 `json:"seeds_per_minute"`
	BusyHours          float64 `json:"busy_hours"`
	BusyHoursPerSecond float64 `json:"busy_hours_per_second"`
	Steps              int     `json:"steps"`
	Entries            int     `json:"entries"`

	// Hash is the hash of all hashes. Hashes are those of the seeds, in order. Both are
	// equal on every machine.
	Hash   string     `json:"hash"`
	Hashes []seedHash `json:"hashes"`

	// Failed is the number of failed seeds, Failures are the first of them; never null.
	Failed   int           `json:"failed"`
	Failures []seedFailure `json:"failures"`
	// Events are the counted events by name, and Short the events that were too rare;
	// never null.
	Events []countedEvent `json:"events"`
	Short  []shortEvent   `json:"short"`
}

// swarmReportVersion changes when a field is removed or changes its meaning.
const swarmReportVersion = 5

type seedHash struct {
	Seed uint64 `json:"seed"`
	Hash string `json:"hash"`
}

type seedFailure struct {
	Seed uint64 `json:"seed"`
	Kind string `json:"kind"`
	Text string `json:"text"`
	// Violations are in order of occurrence; null if there are none.
	Violations []violation `json:"violations"`
	// Replay is the command that plays the seed again. File is the file in which the seed
	// is kept, or empty.
	Replay string `json:"replay"`
	File   string `json:"file,omitempty"`
}

type violation struct {
	Guarantee string `json:"guarantee"`
	Check     string `json:"check"`
	At        string `json:"at"`
	Index     uint64 `json:"index,omitempty"`
	Drain     string `json:"drain,omitempty"`
	Node      string `json:"node,omitempty"`
	Alloc     string `json:"alloc,omitempty"`
	Group     string `json:"group,omitempty"`
	Text      string `json:"text"`
}

type countedEvent struct {
	Event string `json:"event"`
	Runs  int    `json:"runs"`
	Times int    `json:"times"`
}

type shortEvent struct {
	Event string `json:"event"`
	Runs  int    `json:"runs"`
	Want  int    `json:"want"`
}

// printSwarm prints the report of a swarm as JSON. seeds is the requested number.
func printSwarm(out io.Writer, r *swarm.Report, seeds int, hashes []seedHash, kept map[uint64]string) error {
	report := swarmReport{
		Version: swarmReportVersion, OK: r.OK() && r.Seeds == seeds, Size: r.Size.String(),
		First: r.First, Requested: seeds, Interrupted: r.Seeds < seeds, Seeds: r.Seeds, PlayedTwice: r.Twice, Workers: r.Workers,
		Seconds: r.Took.Seconds(), SeedsPerMinute: r.SeedsPerMinute(),
		BusyHours: r.Busy.Hours(), BusyHoursPerSecond: r.BusyHoursPerSecond(),
		Steps: r.Steps, Entries: r.Entries,
		Hash: hexHash(r.Hash), Hashes: hashes,
		Failed: r.Failed, Failures: []seedFailure{}, Events: []countedEvent{}, Short: []shortEvent{},
	}
	for _, f := range r.Failures {
		report.Failures = append(report.Failures, seedFailure{
			Seed: f.Seed, Kind: string(f.Kind), Text: f.Text, Violations: violations(f.Violations),
			Replay: replaySeed(f.Size, f.Seed), File: kept[f.Seed],
		})
	}
	for event, count := range r.Tally.Events {
		report.Events = append(report.Events, countedEvent{string(event), count.Runs, count.Times})
	}
	slices.SortFunc(report.Events, func(a, b countedEvent) int { return strings.Compare(a.Event, b.Event) })
	for _, s := range r.Short {
		report.Short = append(report.Short, shortEvent{string(s.Event), s.Runs, s.Want})
	}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(report)
}

func violations(all []invariant.Violation) (shown []violation) {
	for _, v := range all {
		w := violation{
			Guarantee: v.Guarantee, Check: v.Check, At: v.At.Sub(world.Epoch).String(), Index: v.Index,
			Drain: string(v.Drain), Node: string(v.Node), Alloc: string(v.Alloc), Text: v.Text,
		}
		if v.Group.Name != "" {
			w.Group = v.Group.String()
		}
		shown = append(shown, w)
	}
	return shown
}

// hexHash formats a hash.
func hexHash(h uint64) string { return fmt.Sprintf("%016x", h) }

// replaySeed returns the command that plays a seed again.
func replaySeed(size swarm.Size, seed uint64) string {
	return fmt.Sprintf("nodedrain sim run -size %s -seed %d", size, seed)
}
