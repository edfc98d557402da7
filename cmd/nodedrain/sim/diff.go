package sim

import (
	"slices"
	"strings"
)

// diffContext is the number of equal lines shown around a difference.
const diffContext = 2

// diff returns the differences of two texts by line: a missing line after a minus, an
// added line after a plus. It is empty for equal texts.
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

// edited is a line with its sign: ' ' if it is in both texts, '-' if only in the first,
// '+' if only in the second.
type edited struct {
	sign byte
	text string
}

// maxDiff bounds the pairs of lines that fewest compares.
const maxDiff = 4_000_000

// edits returns the edits from one list of lines to the other, with as many common lines
// as possible. For long texts with many differences it keeps only the common beginning
// and end.
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

// fewest returns the edits by the longest common subsequence of lines.
func fewest(want, got []string) []edited {
	// same[i][k] is the length of the longest common subsequence of want[i:] and got[k:].
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
