package journal

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

const (
	// MaxEvents is how many events a journal has at most.
	MaxEvents = 64
	// MaxGroups is how many groups the journal of an ended drain has at most.
	MaxGroups = 32
	// MaxBytes bounds the size of the journal of an ended drain, in bytes of a snapshot.
	MaxBytes = 6 << 10
	// maxText is how long the texts of an event are at most, in bytes.
	maxText = 48
	// FirstEvents is how many of the first events a journal keeps that has too many. The others are the latest ones.
	FirstEvents = MaxEvents / 8
	// eventBytes and groupBytes bound the sizes of the events, and of the groups of an ended drain.
	eventBytes = MaxBytes / 2
	groupBytes = MaxBytes/2 - 256
)

// Journal is the story of one drain. A Journal that is stored is shared and never written to.
type Journal struct {
	Drain cluster.DrainID
	// Events are in the order of their entries. The begin of a pause of all is written when it ends, with its own time.
	Events []Event
	// EventsOmitted counts the events that are missing after the first ones.
	EventsOmitted int `codec:",omitempty"`
	// Groups are, by key, the groups of which the drain has marked allocations: those that were farthest below
	// their need, and then those with the lowest numbers. They are written when the drain ends.
	Groups []Group `codec:",omitempty"`
	// GroupsOmitted counts the groups that are missing.
	GroupsOmitted int `codec:",omitempty"`
	// Plan is what a plan foretold of the drain, if the newest request had one.
	Plan *cluster.DrainPlan `codec:",omitempty"`
	// EndIndex is the raft index of the entry that ended the drain, or zero.
	EndIndex uint64
}

// Kind is the kind of an event.
type Kind uint8

// The kinds of events.
const (
	// Requested: an operator started the drain. Strategy has the request.
	Requested Kind = iota + 1
	// Changed: an operator changed the strategy. Strategy has the request.
	Changed
	// StageBegan: the drain marked the first allocation of a stage.
	StageBegan
	// StageEnded: no allocation of the stage that had to leave runs on the node.
	StageEnded
	// DeadlineTook: the deadline passed, or the drain was forced, and Allocs allocations were marked for it. Why
	// is the class of the marks.
	DeadlineTook
	// Refused: the servers refused marks, or the end of the drain. Why is the reason, Allocs counts the
	// refusals, and Until is the time of the last one.
	Refused
	// Ended: the drain ended. Why is its outcome.
	Ended
	// Confirmed: no allocation of the ended drain is unconfirmed any more.
	Confirmed
	// Paused: an operator paused the drain, or all drains.
	Paused
	// Resumed: the pause ended.
	Resumed
)

// Event is one event of a drain. Fields that its kind does not name are zero.
type Event struct {
	Kind Kind `codec:"K"`
	// At is the proposer's time of the entry.
	At time.Time `codec:"A"`
	// Index is the raft index of the entry.
	Index uint64 `codec:"I"`
	// By is the operator who caused the event, or empty.
	By string `codec:"B,omitempty"`
	// Strategy is the strategy from this event on, or nil.
	Strategy *cluster.DrainSpec `codec:"D,omitempty"`
	Stage    cluster.Stage      `codec:"S,omitempty"`
	Allocs   int                `codec:"N,omitempty"`
	Why      string             `codec:"W,omitempty"`
	Until    time.Time          `codec:"U,omitempty"`
}

// Copy returns a copy that may be changed with the functions of this package.
func (j *Journal) Copy() *Journal {
	c := *j
	c.Events = slices.Clone(j.Events)
	return &c
}

// Add adds an event. A refusal for the reason of the event before it is counted there.
func (j *Journal) Add(e Event) {
	e.By, e.Why, e.At = cut(e.By), cut(e.Why), e.At.UTC()
	if last := len(j.Events) - 1; e.Kind == Refused && last >= 0 && j.Events[last].Kind == Refused && j.Events[last].Why == e.Why {
		j.Events[last].Allocs += e.Allocs
		j.Events[last].Until = later(j.Events[last].Until, e.At)
		return
	}
	if e.Kind == Refused {
		e.Until = e.At
	}
	j.Events = append(j.Events, e)
	for len(j.Events) > MaxEvents || len(j.Events) > FirstEvents+1 && j.eventBytes() > eventBytes {
		j.Events = slices.Delete(j.Events, FirstEvents, FirstEvents+1)
		j.EventsOmitted++
	}
}

func (j *Journal) eventBytes() (n int) {
	for _, e := range j.Events {
		n += e.bytes()
	}
	return n
}

// bytes is the most that the event takes in a snapshot.
func (e Event) bytes() int {
	n := 48 + len(e.By) + len(e.Why)
	if e.Strategy != nil {
		n += 40
	}
	return n
}

// End ends the journal. It closes the time at the lowest health of each group, and keeps the groups that were
// farthest below their need.
func (j *Journal) End(groups []Group, at time.Time, index uint64) {
	for i := range groups {
		groups[i].rise(at.UTC())
	}
	slices.SortFunc(groups, compareHarm)
	kept, size := 0, 0
	for ; kept < min(len(groups), MaxGroups); kept++ {
		if size += groups[kept].bytes(); size > groupBytes {
			break
		}
	}
	j.Groups, j.GroupsOmitted, j.EndIndex = slices.Clip(groups[:kept]), len(groups)-kept, index
	slices.SortFunc(j.Groups, compareKey)
}

// Running reports whether the drain has not ended.
func (j *Journal) Running() bool { return j.EndIndex == 0 }

// Deadline counts an allocation that was marked because the deadline has passed, or because the drain is forced.
func (j *Journal) Deadline(c cluster.MarkClass, at time.Time, index uint64) {
	if last := len(j.Events) - 1; last >= 0 && j.Events[last].Kind == DeadlineTook && j.Events[last].Why == c.String() {
		j.Events[last].Allocs++
		return
	}
	j.Add(Event{Kind: DeadlineTook, At: at, Index: index, Allocs: 1, Why: c.String()})
}

// Over reports whether the stage has ended.
func (j *Journal) Over(s cluster.Stage) bool {
	return slices.ContainsFunc(j.Events, func(e Event) bool { return e.Kind == StageEnded && e.Stage == s })
}

// Began reports whether the drain has marked an allocation of the stage.
func (j *Journal) Began(s cluster.Stage) bool {
	return slices.ContainsFunc(j.Events, func(e Event) bool { return e.Kind == StageBegan && e.Stage == s })
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// cut returns the beginning of a text, without a part of a character at its end.
func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "")
}

// String returns the kind as it travels in JSON.
func (k Kind) String() string {
	names := [...]string{"", "requested", "changed", "stage began", "stage ended", "deadline took", "refused", "ended", "confirmed", "paused", "resumed"}
	if int(k) < len(names) && k > 0 {
		return names[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Text describes the event in the words of node explain.
func (e Event) Text() string {
	by := e.By
	if by == "" {
		by = "an operator"
	}
	switch e.Kind {
	case Requested:
		return by + " started the drain: " + strategyText(e.Strategy)
	case Changed:
		return by + " changed the drain: " + strategyText(e.Strategy)
	case StageBegan:
		return "stage " + e.Stage.String() + " began to leave"
	case StageEnded:
		return "stage " + e.Stage.String() + " has left"
	case DeadlineTook:
		cause := "because of the deadline"
		if e.Why == cluster.MarkForced.String() {
			cause = "by force"
		}
		return counted(e.Allocs, "allocation") + " had to leave " + cause
	case Refused:
		return "the servers refused " + counted(e.Allocs, "write") + ": " + e.Why
	case Ended:
		text := "ended: " + e.Why
		if e.By != "" {
			text += " by " + e.By
		}
		if e.Allocs > 0 {
			text += ", " + counted(e.Allocs, "allocation") + " still stopping"
		}
		return text
	case Confirmed:
		if e.By == "" {
			return "the ends of all allocations are confirmed"
		}
		return by + " confirmed the drain"
	case Paused:
		return by + " paused the drain"
	case Resumed:
		return by + " resumed the drain"
	}
	return fmt.Sprintf("event of kind %d", e.Kind)
}

// counted is a number with its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func strategyText(s *cluster.DrainSpec) string {
	text := "no deadline"
	switch {
	case s == nil:
		return "unknown strategy"
	case s.Deadline < 0:
		text = "forced"
	case s.Deadline > 0:
		text = "deadline " + s.Deadline.String()
	}
	if s.IgnoreSystemJobs {
		text += ", system jobs stay"
	}
	if s.MaxSurge > 0 {
		text += fmt.Sprintf(", max_surge %d", s.MaxSurge)
	}
	return text
}
