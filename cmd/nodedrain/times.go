package main

import (
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// timeLayout has no space, so that a time is one word of a table, and no offset: times are shown in
// the local time zone. With TZ=UTC in the environment that is UTC.
const timeLayout = "2006-01-02T15:04:05"

// clock formats a time for a table.
func clock(t wire.Time) string { return t.Local().Format(timeLayout) }

// soon formats a time that is near now: without the date if it is today.
func soon(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format(time.TimeOnly)
	}
	return t.Format(timeLayout)
}

// localTimes replaces the times in a text of a server, which are UTC.
func localTimes(text string) string {
	words := strings.Split(text, " ")
	for i, word := range words {
		bare := strings.TrimRight(word, ",;.")
		if t, err := time.Parse(time.RFC3339, bare); err == nil {
			words[i] = t.Local().Format(timeLayout) + word[len(bare):]
		}
	}
	return strings.Join(words, " ")
}
