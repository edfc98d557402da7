package timeline

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// glyphs are what a terminal picture is drawn with, each one column wide.
type glyphs struct {
	// bars are eighths of what was left to go, from little to all; none is nothing.
	bars [8]rune
	none rune
	// skip is where the times are broken.
	skip rune
	// line goes on, turn is where another begins, gap is nobody.
	line, turn, gap rune
	// whole, tight and below are how a group stands: nothing missing, no room, below
	// its limit.
	whole, tight, below rune
	// more stands for several at once, cut for what was cut out of a name, dot
	// between facts.
	more, cut rune
	dot       string
	ascii     bool
}

func unicodeGlyphs() glyphs {
	return glyphs{
		bars: [8]rune{'▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'}, none: '·', skip: '≈', line: '─', turn: '┤', gap: '·',
		whole: '·', tight: '─', below: '▼', more: '+', cut: '…', dot: " · ",
	}
}

func asciiGlyphs() glyphs {
	return glyphs{
		bars: [8]rune{'.', ':', '-', '=', '+', '*', '#', '@'}, none: '_', skip: '~', line: '-', turn: '|', gap: ' ',
		whole: '.', tight: '-', below: '!', more: '+', cut: '~', dot: ", ", ascii: true,
	}
}

// end is the mark of a drain that ended so.
func (g glyphs) end(o cluster.Outcome) rune {
	marks := [...]rune{'✓', '◆', '▲', '✗', '∅'}
	if g.ascii {
		marks = [...]rune{'C', 'D', 'F', 'X', 'G'}
	}
	for i, outcome := range outcomes() {
		if o == outcome {
			return marks[i]
		}
	}
	return '?'
}

// outcomes are the outcomes a drain may have.
func outcomes() [5]cluster.Outcome {
	return [...]cluster.Outcome{
		cluster.OutcomeComplete, cluster.OutcomeDeadlineReached, cluster.OutcomeForced, cluster.OutcomeCancelled, cluster.OutcomeNodeGone,
	}
}

// outcomeText counts nodes by outcome: "3 complete", "1 still running".
func outcomeText(n int, o cluster.Outcome) string {
	if o == cluster.OutcomeNone {
		return fmt.Sprintf("%d still running", n)
	}
	return fmt.Sprintf("%d %s", n, o)
}

// bar is how much a part of a whole is, in eighths, rounded up: what is there is
// seen.
func (g glyphs) bar(part, whole int) rune {
	if part <= 0 || whole <= 0 {
		return g.none
	}
	eighths := (min(part, whole)*8 + whole - 1) / whole
	return g.bars[eighths-1]
}

// room is how much room a group has.
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

// clean replaces what would upset columns: what is not printed, takes two columns
// or none. That leaves most of what is written in rows of letters.
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

// fit shortens a clean text to a number of columns above two. Its end is kept: that
// is where names differ.
func (g glyphs) fit(s string, columns int) string { return g.fitTail(s, columns, columns/2) }

// fitTail shortens a clean text to a number of columns and keeps so many of its end.
func (g glyphs) fitTail(s string, columns, tail int) string {
	runes := []rune(s)
	if len(runes) <= columns {
		return s
	}
	return string(runes[:columns-tail-1]) + string(g.cut) + string(runes[len(runes)-tail:])
}

// apart shortens clean names so that no two are the same: all are cut where that tells them
// apart, and if there is no such place those that are the same are numbered. It returns what
// is shown of each name.
func (g glyphs) apart(names []string, columns int) map[string]string {
	if shown, apart := g.cutAll(names, columns, columns/2); apart {
		return shown
	}
	for tail := columns - 1; tail >= 0; tail-- {
		if shown, apart := g.cutAll(names, columns, tail); apart {
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

// cutAll shortens names and keeps so many columns of the end of each, and reports whether
// that tells them apart.
func (g glyphs) cutAll(names []string, columns, tail int) (shown map[string]string, apart bool) {
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
