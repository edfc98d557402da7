package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// rough formats a duration: rounded to seconds below an hour, to minutes above.
func rough(d time.Duration) string {
	switch {
	case d <= 0:
		return "0s"
	case d < time.Hour:
		return d.Round(time.Second).String()
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

// counted returns a number with its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// jobName returns a job's id, with its namespace unless that is the default one.
func jobName(namespace, id string) string {
	if namespace == "" || namespace == string(cluster.DefaultNamespace) {
		return id
	}
	return namespace + "/" + id
}

// number returns the value, or zero for nil.
func number(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// pairsText returns metadata as key=value pairs, sorted by key.
func pairsText(pairs map[string]string) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		parts = append(parts, key+"="+pairs[key])
	}
	return strings.Join(parts, ", ")
}

func jobVersion(a *wire.Allocation) string {
	if a.Job == nil || a.Job.Version == nil {
		return ""
	}
	return fmt.Sprint(*a.Job.Version)
}

// limitText returns the limit of a drain, and whether it leaves system jobs.
func limitText(s *wire.DrainStrategy) string {
	text := ""
	switch {
	case s.Deadline < 0:
		text = "force drain"
	case s.ForceDeadline.IsZero():
		text = "no deadline"
	default:
		text = clock(s.ForceDeadline) + " deadline"
	}
	if s.IgnoreSystemJobs {
		text += "; ignoring system jobs"
	}
	return text
}

// joined returns a status with its description, if there is one.
func joined(status, description string) string {
	if description == "" {
		return status
	}
	return status + ": " + description
}

// bytesText formats a number of bytes.
func bytesText(n uint64) string {
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
