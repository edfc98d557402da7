// Package jsonscan measures and splits JSON texts that encoding/json may refuse. encoding/json refuses
// a whole text if one value in it is nested more than 10,000 levels deep. With this package a reader
// finds that value, and reads the others.
//
// The functions do not check the values that they return: json.Unmarshal does. They need no stack, and
// their time is linear in the length of the text.
package jsonscan

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Depth returns how deep the arrays and objects of a text are nested: 0 for "5", 1 for "[5]".
func Depth(text []byte) (deepest int) {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = stringEnd(text, i) - 1
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		}
	}
	return deepest
}

// deeperLevels is how many levels a path of [Deeper] names, and pathLevels those of a path of [At].
// namedBytes is the longest part of a key in a path.
const (
	deeperLevels = 8
	pathLevels   = 16
	namedBytes   = 32
)

// level is an open array or object, on the way to a value.
type level struct {
	object bool
	key    []byte // of an object: the quoted key of the present member, or nil before its colon
	index  int    // of an array: the index of the present element
}

type place struct {
	levels []level
	last   []byte // the last string, with its quotes
}

// read reads the bytes of the text from at to the end of a string, or one byte. It returns the next byte.
func (p *place) read(text []byte, at int) (next int) {
	n := len(p.levels)
	switch c := text[at]; c {
	case '"':
		next = stringEnd(text, at)
		p.last = text[at:next]
		return next
	case '{', '[':
		p.levels = append(p.levels, level{object: c == '{'})
	case '}', ']':
		p.levels = p.levels[:max(0, n-1)]
	case ':':
		if n > 0 {
			p.levels[n-1].key = p.last
		}
	case ',':
		if n > 0 {
			p.levels[n-1].index++
			p.levels[n-1].key = nil
		}
	}
	return at + 1
}

// Deeper returns the path of the first array or object that is deeper than most, such as
// "Job.TaskGroups[0].Meta", or false if the text has none. The path of a text that is no JSON may be
// wrong. A path names only the first levels, and only the start of a long key.
func Deeper(text []byte, most int) (path string, found bool) {
	var p place
	for i := 0; i < len(text); i = p.read(text, i) {
		if (text[i] == '{' || text[i] == '[') && len(p.levels) >= most {
			return pathOf(p.levels, deeperLevels), true
		}
	}
	return "", false
}

// At returns the path of the value in which the byte before an offset is, such as
// "Job.TaskGroups[0].Count", or an empty path for the whole text. The offset may be that of an error of
// encoding/json, also in a text that is no JSON. A path names only the first levels, and only the start of a
// long key.
func At(text []byte, offset int) (path string) {
	var p place
	for i := 0; i < min(offset, len(text)); i = p.read(text, i) {
		if i == offset-1 && (text[i] == '{' || text[i] == '[') {
			break // the error is about the object or the array
		}
	}
	if n := len(p.levels); n > 0 && p.levels[n-1].object && p.levels[n-1].key == nil {
		p.levels = p.levels[:n-1] // before the colon of a member: the object
	}
	return pathOf(p.levels, pathLevels)
}

// Twice returns the path of the first key that an object has twice, or false if there is none. The decoder takes the
// last of its values.
func Twice(text []byte) (path string, found bool) {
	var p place
	var keys []map[string]bool // of each level
	for i, next := 0, 0; i < len(text); i = next {
		next = p.read(text, i)
		n := len(keys)
		switch text[i] {
		case '{', '[':
			keys = append(keys, map[string]bool{})
		case '}', ']':
			keys = keys[:max(0, n-1)]
		case ':':
			var key string
			if n == 0 || json.Unmarshal(p.last, &key) != nil {
				continue
			}
			if keys[n-1][key] {
				return pathOf(p.levels, pathLevels), true
			}
			keys[n-1][key] = true
		}
	}
	return "", false
}

// pathOf names at most so many levels.
func pathOf(levels []level, most int) string {
	var path strings.Builder
	for i, l := range levels {
		if i == most {
			return path.String() + "…"
		}
		if !l.object {
			path.WriteString("[" + strconv.Itoa(l.index) + "]")
			continue
		}
		if i > 0 {
			path.WriteByte('.')
		}
		var key string
		if json.Unmarshal(l.key, &key) != nil {
			key = "?"
		}
		if len(key) > namedBytes {
			key = strings.ToValidUTF8(key[:namedBytes], "") + "…"
		}
		path.WriteString(key)
	}
	return path.String()
}

// Member is a key of an object with its value.
type Member struct {
	Key   string
	Value []byte
}

// Members returns the members of an object, in their order. The values are parts of the text.
func Members(object []byte) ([]Member, error) {
	var members []Member
	err := split(object, '{', '}', func(at int) (int, error) {
		if object[at] != '"' {
			return 0, fmt.Errorf("byte %d: a key must be a string", at)
		}
		end := stringEnd(object, at)
		var m Member
		if err := json.Unmarshal(object[at:end], &m.Key); err != nil {
			return 0, fmt.Errorf("byte %d: %w", at, err)
		}
		at = blanksEnd(object, end)
		if at == len(object) || object[at] != ':' {
			return 0, fmt.Errorf("byte %d: a colon must follow a key", at)
		}
		at = blanksEnd(object, at+1)
		end, err := valueEnd(object, at)
		m.Value = object[at:end]
		members = append(members, m)
		return end, err
	})
	return members, err
}

// Elements returns the elements of an array. They are parts of the text.
func Elements(array []byte) ([][]byte, error) {
	var elements [][]byte
	err := split(array, '[', ']', func(at int) (int, error) {
		end, err := valueEnd(array, at)
		elements = append(elements, array[at:end])
		return end, err
	})
	return elements, err
}

// split calls part at the start of each part between two brackets. part returns the end of its part.
func split(text []byte, first, last byte, part func(at int) (end int, err error)) error {
	at := blanksEnd(text, 0)
	if at == len(text) || text[at] != first {
		return fmt.Errorf("byte %d: %q is missing", at, first)
	}
	at = blanksEnd(text, at+1)
	if at < len(text) && text[at] == last {
		return nothingAfter(text, at+1)
	}
	for at < len(text) {
		end, err := part(at)
		if err != nil {
			return err
		}
		at = blanksEnd(text, end)
		switch {
		case at == len(text):
		case text[at] == last:
			return nothingAfter(text, at+1)
		case text[at] != ',':
			return fmt.Errorf("byte %d: a comma is missing", at)
		default:
			at = blanksEnd(text, at+1)
		}
	}
	return errEndsEarly
}

var errEndsEarly = errors.New("the text ends early")

func nothingAfter(text []byte, at int) error {
	if at = blanksEnd(text, at); at < len(text) {
		return fmt.Errorf("byte %d: a second value follows", at)
	}
	return nil
}

// valueEnd returns the end of the value that starts at a byte.
func valueEnd(text []byte, at int) (end int, err error) {
	depth := 0
	for i := at; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = stringEnd(text, i) - 1
			if depth == 0 {
				return i + 1, nil
			}
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			switch {
			case depth == 0:
				return i + 1, nil
			case depth < 0:
				return scalarEnd(at, i)
			}
		case ',', ':', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return scalarEnd(at, i)
			}
		}
	}
	return len(text), errEndsEarly
}

// scalarEnd returns the end of a number or of a word.
func scalarEnd(at, end int) (int, error) {
	if at == end {
		return end, fmt.Errorf("byte %d: a value is missing", at)
	}
	return end, nil
}

// stringEnd returns the end of the string that starts at a byte, with its closing quote.
func stringEnd(text []byte, at int) int {
	for i := at + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

func blanksEnd(text []byte, at int) int {
	for at < len(text) && (text[at] == ' ' || text[at] == '\t' || text[at] == '\r' || text[at] == '\n') {
		at++
	}
	return at
}
