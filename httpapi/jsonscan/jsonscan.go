// Package jsonscan measures JSON texts that encoding/json may refuse, and names places in them. The
// functions need no stack, and their time is linear in the length of the text.
package jsonscan

import (
	"encoding/json"
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

// place is a place in a text.
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

// Deeper returns the path of the first array or object below the given depth, such as
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
