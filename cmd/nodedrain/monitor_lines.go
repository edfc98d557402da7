package main

import (
	"fmt"
	"io"
	"time"
)

// drainDisplay shows what a monitor sees.
type drainDisplay interface {
	// event tells what happened.
	event(at time.Time, text string)
	// trouble tells why the monitor gives up.
	trouble(at time.Time, text string)
	// progress shows how far the drain is.
	progress(drainLook)
	// close leaves what was shown as it is.
	close()
}

// drainLook is how far a drain is.
type drainLook struct {
	pace pacer
	// endsBy is when the drain ends at the latest, or zero if that is not known.
	endsBy time.Time
	held   []heldGroup
	at     time.Time
}

// String is how far the drain is, in a line. While nothing leaves the pace slows down.
func (l drainLook) String() string {
	text := fmt.Sprintf("%d of %s left", l.pace.left, counted(l.pace.most, "allocation"))
	if l.pace.left == 0 {
		return text
	}
	if d, ok := l.pace.remaining(l.at); ok {
		text += ", " + rough(d) + " at this pace"
	}
	if !l.endsBy.IsZero() {
		text += ", ends by " + l.endsBy.Local().Format(time.RFC3339)
	}
	return text
}

// rough is a duration for people: to seconds below an hour, to minutes above.
func rough(d time.Duration) string {
	switch {
	case d <= 0:
		return "0s"
	case d < time.Hour:
		return d.Round(time.Second).String()
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

// drainLines writes lines, also where no terminal is.
type drainLines struct {
	out, errs io.Writer
	// told is how many were left when a line last said so; -1 before the first.
	told int
}

func newDrainLines(out, errs io.Writer) *drainLines {
	return &drainLines{out: out, errs: errs, told: -1}
}

func (l *drainLines) event(at time.Time, text string)   { stamped(l.out, at, text) }
func (l *drainLines) trouble(at time.Time, text string) { stamped(l.errs, at, text) }

// progress writes a line when another number is left.
func (l *drainLines) progress(look drainLook) {
	if look.pace.left == l.told {
		return
	}
	l.told = look.pace.left
	stamped(l.out, look.at, look.String())
}

func (l *drainLines) close() {}

// stamped writes a line with the local time before it, as the compatible command does.
func stamped(out io.Writer, at time.Time, text string) {
	fmt.Fprintf(out, "%s: %s\n", at.Local().Format(time.RFC3339), text)
}

// counted is a number of things.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
