package timeline

import (
	"maps"
	"slices"
	"strings"
	"unicode"
)

// faultNames are the names of the faults that have struck, sorted.
func faultNames(faults []fault) []string {
	names := make(map[string]bool)
	for _, f := range faults {
		names[f.name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// faultKeys returns a letter for each name of a fault: a letter of the name if one is free,
// otherwise any free letter, and '*' if no letter is free.
func faultKeys(faults []fault) map[string]rune {
	keys := make(map[string]rune)
	taken := make(map[rune]bool)
	for _, name := range faultNames(faults) {
		keys[name] = '*'
		for _, key := range letters(name) {
			if !taken[key] {
				keys[name], taken[key] = key, true
				break
			}
		}
	}
	return keys
}

// letters returns the possible letters for a fault, the best first: the first letters of its
// words, then its other letters, then all others. It ignores the part before the slash, because
// many faults share that part.
func letters(name string) []rune {
	_, own, found := strings.Cut(name, "/")
	if !found {
		own = name
	}
	var first, rest []rune
	for i, r := range own {
		switch {
		case r > unicode.MaxASCII || !unicode.IsLetter(r):
		case i == 0 || own[i-1] == '-':
			first = append(first, unicode.ToUpper(r), unicode.ToLower(r))
		default:
			rest = append(rest, unicode.ToUpper(r), unicode.ToLower(r))
		}
	}
	all := append(first, rest...)
	for r := 'A'; r <= 'Z'; r++ {
		all = append(all, r, unicode.ToLower(r))
	}
	return all
}
