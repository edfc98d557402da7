package drawing

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Glyphs are the characters of a terminal picture. Each is one column wide.
type Glyphs struct {
	// Bars show one to eight eighths of the allocations left to drain. None shows zero.
	Bars [8]rune
	None rune
	// Skip is a break in the scale.
	Skip rune
	// Line continues a term or a fault, Turn separates terms.
	Line, Turn rune
	// Point is an event.
	Point rune
	// Whole shows a group without missing allocations, Tight one without room, Below one below
	// its limit.
	Whole, Tight, Below rune
	// More shows several faults or violations at one place, Cut replaces the removed part of
	// a name, Dot separates facts.
	More, Cut rune
	Dot       string
	ascii     bool
}

// Unicode returns the characters of a terminal with UTF-8.
func Unicode() Glyphs {
	return Glyphs{
		Bars: [8]rune{'▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'}, None: '·', Skip: '≈', Line: '─', Turn: '┤', Point: '●',
		Whole: '·', Tight: '─', Below: '▼', More: '+', Cut: '…', Dot: " · ",
	}
}

// ASCII returns ASCII characters.
func ASCII() Glyphs {
	return Glyphs{
		Bars: [8]rune{'.', ':', '-', '=', '+', '*', '#', '@'}, None: '_', Skip: '~', Line: '-', Turn: '|', Point: 'o',
		Whole: '.', Tight: '-', Below: '!', More: '+', Cut: '~', Dot: ", ", ascii: true,
	}
}

// End is the character of an outcome.
func (g Glyphs) End(o cluster.Outcome) rune {
	marks := [...]rune{'✓', '◇', '◆', '▲', '✗', '∅'}
	if g.ascii {
		marks = [...]rune{'C', 'U', 'D', 'F', 'X', 'G'}
	}
	for i, outcome := range Outcomes() {
		if o == outcome {
			return marks[i]
		}
	}
	return '?'
}

// Outcomes are all outcomes of drains.
func Outcomes() [6]cluster.Outcome {
	return [...]cluster.Outcome{
		cluster.OutcomeComplete, cluster.OutcomeUnconfirmed, cluster.OutcomeDeadlineReached, cluster.OutcomeForced, cluster.OutcomeCancelled, cluster.OutcomeNodeGone,
	}
}

// Bar returns the bar for a part of a whole. It rounds up, so that one allocation is visible.
func (g Glyphs) Bar(part, whole int) rune {
	if part <= 0 || whole <= 0 {
		return g.None
	}
	eighths := (min(part, whole)*8 + whole - 1) / whole
	return g.Bars[eighths-1]
}

// Room is the character of a group that has that many more healthy allocations than its limit.
func (g Glyphs) Room(n int) rune {
	switch {
	case n < 0:
		return g.Below
	case n == 0:
		return g.Tight
	case n > 9:
		return '9'
	}
	return rune('0' + n)
}

// Clean replaces characters that are not printable or not one column wide.
func (g Glyphs) Clean(s string) string {
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

// Fit shortens a clean text to a number of columns above two. It keeps the end, because names
// often differ there.
func (g Glyphs) Fit(s string, columns int) string { return g.fitTail(s, columns, columns/2) }

// fitTail shortens a clean text to a number of columns and keeps tail columns of its end.
func (g Glyphs) fitTail(s string, columns, tail int) string {
	runes := []rune(s)
	if len(runes) <= columns {
		return s
	}
	return string(runes[:columns-tail-1]) + string(g.Cut) + string(runes[len(runes)-tail:])
}

// Distinct shortens clean names to different labels, and returns the label of each name. It cuts
// all names at the same place. If no place gives different labels, it numbers equal labels.
func (g Glyphs) Distinct(names []string, columns int) map[string]string {
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
		cut := g.Fit(name, columns)
		if times[cut]++; times[cut] > 1 {
			number := fmt.Sprintf("#%d", times[cut])
			cut = g.Fit(name, columns-len(number)) + number
		}
		shown[name] = cut
	}
	return shown
}

// cutAll shortens names, keeps tail columns of the end of each, and reports whether the labels
// differ.
func (g Glyphs) cutAll(names []string, columns, tail int) (shown map[string]string, distinct bool) {
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
