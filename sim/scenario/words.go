package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agext/levenshtein"
)

// split splits a line into words, without its comment.
func split(line string) []string {
	words := strings.Fields(line)
	for i, w := range words {
		if w[0] == '#' {
			return words[:i]
		}
	}
	return words
}

// subject returns the first word, which is the subject of a directive, and the rest. noun names the
// subject in the error.
func subject(noun string, words []string) (word string, rest []string, err error) {
	if len(words) == 0 {
		return "", nil, fmt.Errorf("%s is missing", noun)
	}
	return words[0], words[1:], nil
}

// params reads parameters into fields and returns the names of the parameters.
func params(fields []field, words []string) (found []string, err error) {
	var errs []error
	for _, word := range words {
		name, value, valued := strings.Cut(word, "=")
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == name })
		switch {
		case i < 0:
			errs = append(errs, unknown("word", name, fieldNames(fields)))
			continue
		case slices.Contains(found, name):
			errs = append(errs, fmt.Errorf("%q is given twice", name))
		case fields[i].flag && valued:
			errs = append(errs, fmt.Errorf("%q takes no value", name))
		case !fields[i].flag && value == "" && (valued || !fields[i].bare):
			errs = append(errs, fmt.Errorf("%q needs a value: %s=VALUE", name, name))
		default:
			if err := fields[i].set(value); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", name, err))
			}
		}
		found = append(found, name)
	}
	for _, f := range fields {
		if f.required && !slices.Contains(found, f.name) {
			errs = append(errs, fmt.Errorf("%q is missing: %s=VALUE", f.name, f.name))
		}
	}
	return found, errors.Join(errs...)
}

func fieldNames(fields []field) []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	return names
}

// unknown is the error for a word that is not one of the allowed ones.
func unknown(kind, word string, allowed []string) error {
	if near := nearest(word, allowed); near != "" {
		return fmt.Errorf("unknown %s %q, did you mean %q?", kind, word, near)
	}
	if len(allowed) == 0 {
		return fmt.Errorf("unknown %s %q: no more words are allowed here", kind, word)
	}
	return fmt.Errorf("unknown %s %q: expected one of %s", kind, word, strings.Join(allowed, ", "))
}

// nearest returns the most similar allowed word, or empty if none is similar.
func nearest(word string, allowed []string) string {
	if len(word) > maxName {
		return ""
	}
	best, least := "", 3
	for _, k := range allowed {
		if d := levenshtein.Distance(word, k, nil); d < least && 2*d <= len(k) {
			best, least = k, d
		}
	}
	return best
}
