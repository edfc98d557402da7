package main

import (
	"slices"
	"strings"
)

// diffContext is how many lines that are the same are shown around those that are
// not.
const diffContext = 2

// diff shows how two texts differ, line by line: what is missing after a minus, what
// is there instead after a plus. It is empty if they do not.
func diff(want, got string) string {
	if want == got {
		return ""
	}
	lines := edits(strings.Split(want, "\n"), strings.Split(got, "\n"))
	near := make([]bool, len(lines))
	for i, l := range lines {
		if l.sign == ' ' {
			continue
		}
		for k := max(0, i-diffContext); k <= min(len(lines)-1, i+diffContext); k++ {
			near[k] = true
		}
	}
	var b strings.Builder
	for i, l := range lines {
		if near[i] {
			b.WriteString(strings.TrimRight(string(l.sign)+" "+l.text, " ") + "\n")
		} else if i > 0 && near[i-1] {
			b.WriteString("  ...\n")
		}
	}
	return b.String()
}

// edited is a line, and whether it is in both texts, or only in the first or in the
// second: ' ', '-' or '+'.
type edited struct {
	sign byte
	text string
}

// maxDiff bounds the pairs of lines that are compared.
const maxDiff = 4_000_000

// edits makes one list of lines into another, with as many lines as possible left as
// they are. Of texts that are long and differ in much it leaves only the beginning and
// the end.
func edits(want, got []string) []edited {
	var before, after []edited
	for len(want) > 0 && len(got) > 0 && want[0] == got[0] {
		before, want, got = append(before, edited{' ', want[0]}), want[1:], got[1:]
	}
	for len(want) > 0 && len(got) > 0 && want[len(want)-1] == got[len(got)-1] {
		after = append(after, edited{' ', want[len(want)-1]})
		want, got = want[:len(want)-1], got[:len(got)-1]
	}
	slices.Reverse(after)
	if len(want)*len(got) > maxDiff {
		return slices.Concat(before, signed('-', want), signed('+', got), after)
	}
	return slices.Concat(before, fewest(want, got), after)
}

func signed(sign byte, texts []string) (lines []edited) {
	for _, t := range texts {
		lines = append(lines, edited{sign, t})
	}
	return lines
}

// fewest is edits by the longest list of lines that both have.
func fewest(want, got []string) []edited {
	// same[i][k] is how many lines the rests from i and from k have in common, in order.
	same := make([][]int, len(want)+1)
	for i := range same {
		same[i] = make([]int, len(got)+1)
	}
	for i := len(want) - 1; i >= 0; i-- {
		for k := len(got) - 1; k >= 0; k-- {
			if same[i][k] = max(same[i+1][k], same[i][k+1]); want[i] == got[k] {
				same[i][k] = same[i+1][k+1] + 1
			}
		}
	}
	var lines []edited
	i, k := 0, 0
	for i < len(want) || k < len(got) {
		switch {
		case i < len(want) && k < len(got) && want[i] == got[k]:
			lines = append(lines, edited{' ', want[i]})
			i, k = i+1, k+1
		case k == len(got) || i < len(want) && same[i+1][k] >= same[i][k+1]:
			lines = append(lines, edited{'-', want[i]})
			i++
		default:
			lines = append(lines, edited{'+', got[k]})
			k++
		}
	}
	return lines
}
