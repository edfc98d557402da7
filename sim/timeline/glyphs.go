package timeline

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// glyphs are the characters of a terminal picture. Each is one column wide.
type glyphs struct {
	// bars show one to eight eighths of the allocations left to drain. none shows zero.
	bars [8]rune
	none rune
	// skip is a break in the scale.
	skip rune
	// line continues a term or a fault, turn separates terms.
	line, turn rune
	// whole shows a group without missing allocations, tight one without room, below one below
	// its limit.
	whole, tight, below rune
	// more shows several faults or violations at one place, cut replaces the removed part of
	// a name, dot separates facts.
	more, cut rune
	dot       string
	ascii     bool
}

func unicodeGlyphs() glyphs {
	return glyphs{
		bars: [8]rune{'▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'}, none: '·', skip: '≈', line: '─', turn: '┤',
		whole: '·', tight: '─', below: '▼', more: '+', cut: '…', dot: " · ",
	}
}

func asciiGlyphs() glyphs {
	return glyphs{
		bars: [8]rune{'.', ':', '-', '=', '+', '*', '#', '@'}, none: '_', skip: '~', line: '-', turn: '|',
		whole: '.', tight: '-', below: '!', more: '+', cut: '~', dot: ", ", ascii: true,
	}
}

// end is the character of an outcome.
func (g glyphs) end(o cluster.Outcome) rune {
	marks := [...]rune{'✓', '◇', '◆', '▲', '✗', '∅'}
	if g.ascii {
		marks = [...]rune{'C', 'U', 'D', 'F', 'X', 'G'}
	}
	for i, outcome := range outcomes() {
		if o == outcome {
			return marks[i]
		}
	}
	return '?'
}

// outcomes are all outcomes of drains.
func outcomes() [6]cluster.Outcome {
	return [...]cluster.Outcome{
		cluster.OutcomeComplete, cluster.OutcomeUnconfirmed, cluster.OutcomeDeadlineReached, cluster.OutcomeForced, cluster.OutcomeCancelled, cluster.OutcomeNodeGone,
	}
}

// outcomeText counts nodes by outcome: "3 complete", "1 still running".
func outcomeText(n int, o cluster.Outcome) string {
	if o == cluster.OutcomeNone {
		return fmt.Sprintf("%d still running", n)
	}
	return fmt.Sprintf("%d %s", n, o)
}

// bar returns the bar for a part of a whole. It rounds up, so that one allocation is visible.
func (g glyphs) bar(part, whole int) rune {
	if part <= 0 || whole <= 0 {
		return g.none
	}
	eighths := (min(part, whole)*8 + whole - 1) / whole
	return g.bars[eighths-1]
}

// room is the character of a group's level.
func (g glyphs) room(l level) rune {
	switch {
	case l.below():
		return g.below
	case l.whole():
		return g.whole
	case l.tight():
		return g.tight
	case l.room() > 9:
		return '9'
	}
	return rune('0' + l.room())
}

// clean replaces characters that are not printable or not one column wide.
func (g glyphs) clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r < unicode.MaxASCII && unicode.IsPrint(r):
			return r
		case g.ascii || r >= 0x1100 && !(0x2010 <= r && r < 0x2600) || !unicode.IsPrint(r) || unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Me, r):
			return '?'
		}
		return r
	}, s)
}

// fit shortens a clean text to a number of columns above two. It keeps the end, because names
// often differ there.
func (g glyphs) fit(s string, columns int) string { return g.fitTail(s, columns, columns/2) }

// fitTail shortens a clean text to a number of columns and keeps tail columns of its end.
func (g glyphs) fitTail(s string, columns, tail int) string {
	runes := []rune(s)
	if len(runes) <= columns {
		return s
	}
	return string(runes[:columns-tail-1]) + string(g.cut) + string(runes[len(runes)-tail:])
}

// distinct shortens clean names to different labels, and returns the label of each name. It cuts
// all names at the same place. If no place gives different labels, it numbers equal labels.
func (g glyphs) distinct(names []string, columns int) map[string]string {
	if shown, distinct := g.cutAll(names, columns, columns/2); distinct {
		return shown
	}
	for tail := columns - 1; tail >= 0; tail-- {
		if shown, distinct := g.cutAll(names, columns, tail); distinct {
			return shown
		}
	}
	shown, times := make(map[string]string), make(map[string]int)
	for _, name := range names {
		if shown[name] != "" {
			continue
		}
		cut := g.fit(name, columns)
		if times[cut]++; times[cut] > 1 {
			number := fmt.Sprintf("#%d", times[cut])
			cut = g.fit(name, columns-len(number)) + number
		}
		shown[name] = cut
	}
	return shown
}

// cutAll shortens names, keeps tail columns of the end of each, and reports whether the labels
// differ.
func (g glyphs) cutAll(names []string, columns, tail int) (shown map[string]string, distinct bool) {
	shown = make(map[string]string)
	of := make(map[string]string)
	for _, name := range names {
		cut := g.fitTail(name, columns, tail)
		if other, taken := of[cut]; taken && other != name {
			return nil, false
		}
		shown[name], of[cut] = cut, name
	}
	return shown, true
}
