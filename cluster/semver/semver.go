// Package semver compares the versions that nodes report with the constraints of jobs, such as
// ">= 1.2, < 2".
package semver

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Constraints are conditions on a version that must all hold.
type Constraints struct {
	strict     bool
	conditions []condition
}

type condition struct {
	operand string
	version version
}

// version has numbers, as many as its text, and identifiers of a prerelease.
type version struct {
	numbers    []uint64
	prerelease []string
}

// maxNumbers bounds the numbers of a version, and maxConditions the conditions of a text.
const (
	maxNumbers    = 8
	maxConditions = 20
)

// ParseLoose reads constraints whose versions have one or more numbers. Missing numbers are zero. A
// prerelease satisfies an order only if the constraint names a prerelease of the same numbers. The
// operand ~> lets the last number that the constraint names grow.
func ParseLoose(text string) (Constraints, error) { return parse(text, false) }

// Parse reads constraints on semantic versions of three numbers. Prereleases are ordered as Semantic
// Versioning 2.0.0 specifies. There is no operand ~>.
func Parse(text string) (Constraints, error) { return parse(text, true) }

func parse(text string, strict bool) (Constraints, error) {
	parts := strings.Split(text, ",")
	if len(parts) > maxConditions {
		return Constraints{}, fmt.Errorf("there are more than %d conditions", maxConditions)
	}
	c := Constraints{strict: strict}
	for _, part := range parts {
		one, err := parseCondition(strings.TrimSpace(part), strict)
		if err != nil {
			return Constraints{}, err
		}
		c.conditions = append(c.conditions, one)
	}
	return c, nil
}

func parseCondition(text string, strict bool) (condition, error) {
	c := condition{operand: "="}
	for _, operand := range []string{">=", "<=", "!=", "~>", "=", ">", "<"} {
		if rest, found := strings.CutPrefix(text, operand); found {
			c.operand, text = operand, strings.TrimSpace(rest)
			break
		}
	}
	if strict && c.operand == "~>" {
		return c, errors.New("semantic versions have no operand ~>")
	}
	var err error
	c.version, err = parseVersion(text, strict)
	return c, err
}

func parseVersion(text string, strict bool) (version, error) {
	wrong := fmt.Errorf("%q is not a version", text)
	body, _, _ := strings.Cut(strings.TrimPrefix(text, "v"), "+") // builds have no order
	body, prerelease, has := strings.Cut(body, "-")
	var v version
	for _, part := range strings.Split(body, ".") {
		number, err := strconv.ParseUint(part, 10, 63)
		if err != nil || len(v.numbers) == maxNumbers || (strict && len(part) > 1 && part[0] == '0') {
			return v, wrong
		}
		v.numbers = append(v.numbers, number)
	}
	if strict && len(v.numbers) != 3 {
		return v, fmt.Errorf("%q is not a semantic version of three numbers", text)
	}
	if !has {
		return v, nil
	}
	v.prerelease = strings.Split(prerelease, ".")
	for _, identifier := range v.prerelease {
		if identifier == "" || strings.ContainsFunc(identifier, isForeign) {
			return v, wrong
		}
	}
	return v, nil
}

// isForeign reports whether an identifier of a prerelease must not contain the rune.
func isForeign(r rune) bool {
	return (r < '0' || '9' < r) && (r < 'a' || 'z' < r) && (r < 'A' || 'Z' < r) && r != '-'
}

// Match reports whether the version satisfies all conditions. A text that is not a version satisfies
// none, and no version satisfies the zero value.
func (c Constraints) Match(text string) bool {
	v, err := parseVersion(strings.TrimSpace(text), c.strict)
	if err != nil || len(c.conditions) == 0 {
		return false
	}
	for _, one := range c.conditions {
		if !one.match(v, c.strict) {
			return false
		}
	}
	return true
}

func (c condition) match(v version, strict bool) bool {
	order := v.compare(c.version)
	switch c.operand {
	case "=":
		return order == 0
	case "!=":
		return order != 0
	}
	if !strict && v.prerelease != nil && (c.version.prerelease == nil || v.compareNumbers(c.version) != 0) {
		return false
	}
	switch c.operand {
	case ">":
		return order > 0
	case ">=":
		return order >= 0
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	}
	for i := range len(c.version.numbers) - 1 { // ~>
		if v.number(i) != c.version.number(i) {
			return false
		}
	}
	return order >= 0
}

func (v version) number(i int) uint64 {
	if i < len(v.numbers) {
		return v.numbers[i]
	}
	return 0
}

func (v version) compareNumbers(o version) int {
	for i := range max(len(v.numbers), len(o.numbers)) {
		if order := cmp.Compare(v.number(i), o.number(i)); order != 0 {
			return order
		}
	}
	return 0
}

// compare orders a prerelease before its release.
func (v version) compare(o version) int {
	if order := v.compareNumbers(o); order != 0 {
		return order
	}
	switch {
	case v.prerelease == nil && o.prerelease == nil:
		return 0
	case v.prerelease == nil:
		return 1
	case o.prerelease == nil:
		return -1
	}
	for i := range min(len(v.prerelease), len(o.prerelease)) {
		if order := compareIdentifiers(v.prerelease[i], o.prerelease[i]); order != 0 {
			return order
		}
	}
	return cmp.Compare(len(v.prerelease), len(o.prerelease))
}

// compareIdentifiers orders numbers by value, and before all other identifiers.
func compareIdentifiers(a, b string) int {
	x, errX := strconv.ParseUint(a, 10, 64)
	y, errY := strconv.ParseUint(b, 10, 64)
	switch {
	case errX == nil && errY == nil:
		return cmp.Compare(x, y)
	case errX == nil:
		return -1
	case errY == nil:
		return 1
	}
	return cmp.Compare(a, b)
}
