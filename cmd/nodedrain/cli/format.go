package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Rough formats a duration: rounded to seconds below an hour, to minutes above.
func Rough(d time.Duration) string {
	switch {
	case d <= 0:
		return "0s"
	case d < time.Hour:
		return d.Round(time.Second).String()
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

// Count returns a number with its noun.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// JobName returns a job's id, with its namespace unless that is the default one.
func JobName(namespace, id string) string {
	if namespace == "" || namespace == string(cluster.DefaultNamespace) {
		return id
	}
	return namespace + "/" + id
}

// Number returns the value, or zero for nil.
func Number(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// PairsText returns metadata as key=value pairs, sorted by key.
func PairsText(pairs map[string]string) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		parts = append(parts, key+"="+pairs[key])
	}
	return strings.Join(parts, ", ")
}

// JobVersion returns the version of an allocation's job, or empty.
func JobVersion(a *wire.Allocation) string {
	if a.Job == nil || a.Job.Version == nil {
		return ""
	}
	return fmt.Sprint(*a.Job.Version)
}

// LimitText returns the limit of a drain, and whether it leaves system jobs.
func LimitText(s *wire.DrainStrategy) string {
	text := ""
	switch {
	case s.Deadline < 0:
		text = "force drain"
	case s.ForceDeadline.IsZero():
		text = "no deadline"
	default:
		text = Clock(s.ForceDeadline) + " deadline"
	}
	if s.IgnoreSystemJobs {
		text += "; ignoring system jobs"
	}
	if s.MaxSurge > 0 {
		text += fmt.Sprintf("; max_surge %d", s.MaxSurge)
	}
	return text
}

// Joined returns a status with its description, if there is one.
func Joined(status, description string) string {
	if description == "" {
		return status
	}
	return status + ": " + description
}

// BytesText formats a number of bytes.
func BytesText(n uint64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n), 0
	for value >= 1024 && unit < len("KMGTPE") {
		value /= 1024
		unit++
	}
	return fmt.Sprintf("%.1f %ciB", value, " KMGTPE"[unit])
}

// TimeLayout has no space, so that a time is one word of a table, and no offset: times are shown in
// the local time zone. With TZ=UTC in the environment that is UTC.
const TimeLayout = "2006-01-02T15:04:05"

// Clock formats a time for a table.
func Clock(t wire.Time) string { return t.Local().Format(TimeLayout) }

// Soon formats a time that is near now: without the date if it is today.
func Soon(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format(time.TimeOnly)
	}
	return t.Format(TimeLayout)
}

// LocalTimes replaces the times in a text of a server, which are UTC.
func LocalTimes(text string) string {
	words := strings.Split(text, " ")
	for i, word := range words {
		bare := strings.TrimRight(word, ",;.")
		if t, err := time.Parse(time.RFC3339, bare); err == nil {
			words[i] = t.Local().Format(TimeLayout) + word[len(bare):]
		}
	}
	return strings.Join(words, " ")
}

// Ago returns how long ago a time in Unix nanoseconds was, or the time itself if exact is set.
func Ago(ns int64, now time.Time, exact bool) string {
	switch {
	case ns == 0:
		return ""
	case exact:
		return time.Unix(0, ns).Local().Format(TimeLayout)
	}
	return Rough(now.Sub(time.Unix(0, ns))) + " ago"
}

// TimeCell returns a time for a table.
func TimeCell(t wire.Time) string {
	if t.IsZero() {
		return "-"
	}
	return Clock(t)
}

// WaitText returns the event for which a stopping task waits, and until when.
func WaitText(w *wire.TaskWait, now time.Time) string {
	text := w.For
	if until := w.Until.Time; !until.IsZero() {
		text += " until " + Clock(w.Until)
		if left := until.Sub(now); left > 0 {
			text += " (" + Rough(left) + " left)"
		}
	}
	if w.Detail != "" {
		text += ": " + w.Detail
	}
	return text
}
