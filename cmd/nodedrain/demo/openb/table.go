package openb

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxAmount bounds every amount in a list. It is far above any machine, and the sum of a whole
// list does not overflow.
const maxAmount = 1 << 40

// table reads a list line by line. Errors name the file and the line.
type table struct {
	file    string
	reader  *csv.Reader
	columns map[string]int // by name
	record  []string
	err     error // the first error of the current line
}

// openTable reads the first line, which must name the required columns.
func openTable(file string, r io.Reader, required ...string) (*table, error) {
	t := &table{file: file, reader: csv.NewReader(r), columns: make(map[string]int)}
	t.reader.ReuseRecord = true
	names, err := t.reader.Read()
	if err == io.EOF {
		return nil, fmt.Errorf("%s:1: the list is empty: the first line must name the columns", file)
	}
	if err != nil {
		return nil, t.wrong(err)
	}
	for i, name := range names {
		name = strings.TrimPrefix(name, "\ufeff") // some spreadsheets write it
		if _, twice := t.columns[name]; twice {
			return nil, fmt.Errorf("%s:1: column %q occurs twice", file, name)
		}
		t.columns[name] = i
	}
	for _, name := range required {
		if _, ok := t.columns[name]; !ok {
			return nil, fmt.Errorf("%s:1: column %q is missing", file, name)
		}
	}
	return t, nil
}

// next goes to the next line. It returns false at the end of the list.
func (t *table) next() (bool, error) {
	record, err := t.reader.Read()
	switch {
	case err == io.EOF:
		return false, nil
	case err != nil:
		return false, t.wrong(err)
	}
	t.record, t.err = record, nil
	return true, nil
}

// text returns the field of the current line in that column, empty if the list has no such column.
// It must be valid UTF-8.
func (t *table) text(column string) string {
	at, ok := t.columns[column]
	if !ok {
		return ""
	}
	s := t.record[at]
	if !utf8.ValidString(s) {
		t.fail(column, "is not valid UTF-8")
	}
	return s
}

// name returns a field that must not be empty.
func (t *table) name(column string) string {
	s := t.text(column)
	if s == "" {
		t.fail(column, "is empty")
	}
	return s
}

// amount returns a field that must be a whole number, not negative.
func (t *table) amount(column string) int64 {
	s := t.text(column)
	n, err := strconv.ParseUint(s, 10, 63)
	switch {
	case err != nil:
		t.fail(column, fmt.Sprintf("is %q and must be a whole number, not negative", s))
	case n > maxAmount:
		t.fail(column, fmt.Sprintf("is %q, which is more than any machine has", s))
	}
	return int64(n)
}

// fail notes the first error of the current line.
func (t *table) fail(column, why string) {
	if t.err == nil {
		line, _ := t.reader.FieldPos(t.columns[column])
		t.err = fmt.Errorf("%s:%d: %s %s", t.file, line, column, why)
	}
}

// wrong adds the file, and the line of a syntax error.
func (t *table) wrong(err error) error {
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		return fmt.Errorf("%s:%d: %w", t.file, parse.Line, parse.Err)
	}
	return fmt.Errorf("%s: %w", t.file, err)
}
