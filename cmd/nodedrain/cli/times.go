package cli

import (
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

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

// WaitText says what a stopping task waits for.
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
