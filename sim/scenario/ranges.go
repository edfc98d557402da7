package scenario

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// maxDigits limits the number at the end of a name in a range.
const maxDigits = 9

// numbered splits a name into a prefix and the number at its end. ok is false if there is no such
// number, or if it is too long.
func numbered(name string) (prefix, digits string, ok bool) {
	prefix = strings.TrimRight(name, "0123456789")
	digits = name[len(prefix):]
	return prefix, digits, digits != "" && len(digits) <= maxDigits
}

// nth returns the name n places after one that ends with digits. The number keeps its width.
func nth(prefix, digits string, n int) string {
	first, _ := strconv.Atoi(digits) // they are digits
	return fmt.Sprintf("%s%0*d", prefix, len(digits), first+n)
}

// follows reports whether a name comes directly after another in a range.
func follows(name, before string) bool {
	prefix, digits, ok := numbered(before)
	return ok && name == nth(prefix, digits, 1)
}

// expandRange returns the names from first to last. It fails if there are more than most.
func expandRange(first, last string, most int) ([]string, error) {
	prefix, from, ok := numbered(first)
	prefix2, to, ok2 := numbered(last)
	if !ok || !ok2 || prefix != prefix2 {
		return nil, fmt.Errorf("%s..%s is not a range: the two names may differ only in the number at the end", first, last)
	}
	low, _ := strconv.Atoi(from) // they are digits
	high, _ := strconv.Atoi(to)
	switch {
	case high < low:
		return nil, fmt.Errorf("%s..%s: the second number is less than the first", first, last)
	case nth(prefix, from, high-low) != last:
		return nil, fmt.Errorf("%s..%s: write %s", first, last, nth(prefix, from, high-low))
	case high-low >= most:
		return nil, errTooMany
	}
	names := make([]string, high-low+1)
	for i := range names {
		names[i] = nth(prefix, from, i)
	}
	return names, nil
}

// maxNames limits the names to which all ranges of one file expand.
const maxNames = 1_000_000

var errTooMany = errors.New("too many names: the ranges of a file may expand to a million")

// names expands a list of names and ranges: "n1", "n1..n6", "n1,n4..n6".
func (p *scope) names(text string) ([]string, error) {
	var all []string
	for part := range strings.SplitSeq(text, ",") {
		names, err := p.nameRange(part)
		if err != nil {
			return nil, err
		}
		all = append(all, names...)
	}
	return all, nil
}

// nameRange expands one name or range.
func (p *scope) nameRange(text string) ([]string, error) {
	first, last, ranged := strings.Cut(text, "..")
	if err := checkName(first); err != nil {
		return nil, err
	}
	names := []string{first}
	if ranged {
		if err := checkName(last); err != nil {
			return nil, err
		}
		var err error
		if names, err = expandRange(first, last, p.room); err != nil {
			return nil, err
		}
	}
	if p.room -= len(names); p.room < 0 {
		return nil, errTooMany
	}
	return names, nil
}

// minRun is the least number of consecutive names that are printed as a range.
const minRun = 3

// listText prints names as a list. Consecutive names are ranges.
func listText[T ~string](names []T) string {
	var parts []string
	for len(names) > 0 {
		run := 1
		for run < len(names) && follows(string(names[run]), string(names[run-1])) {
			run++
		}
		if run >= minRun {
			parts = append(parts, rangeText(string(names[0]), string(names[run-1])))
		} else {
			run = 1
			parts = append(parts, string(names[0]))
		}
		names = names[run:]
	}
	return strings.Join(parts, ",")
}

// rangeText prints the names from first to last.
func rangeText(first, last string) string {
	if first == last {
		return first
	}
	return first + ".." + last
}
