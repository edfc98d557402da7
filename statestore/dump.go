package statestore

import (
	"bufio"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Dump writes every field of every row of every table as text, one row on each line. Two states are
// equal if and only if their dumps are equal. Each job version is written once; rows refer to it by
// number.
func Dump(w io.Writer, s *Snapshot) error {
	versions, err := jobVersionsOf(s, func(j *cluster.Job) (string, error) {
		return string(dumper{nil, names{}}.value(nil, reflect.ValueOf(j).Elem())), nil
	})
	if err != nil {
		return err
	}
	d, out := dumper{versions.number, names{}}, bufio.NewWriter(w)
	fmt.Fprintln(out, "job versions")
	for i, text := range versions.texts {
		fmt.Fprintf(out, "job#%d %s\n", i+1, text)
	}
	var line []byte
	for _, table := range tableNames() {
		rows := iterate(s.tables, table, indexID, nil)
		row := rows.Next()
		if row == nil && slices.Contains([]string{TableVolumes, TableClaims, tableJournals, tableJournalGroups, tableTimes, tablePause}, table) {
			continue // older builds do not have the table, and dumps of different builds are compared
		}
		fmt.Fprintln(out, table)
		for ; row != nil; row = rows.Next() {
			line = append(d.value(line[:0], reflect.ValueOf(row)), '\n')
			out.Write(line)
		}
	}
	return out.Flush() // returns the errors of earlier writes, too
}

// RowDump returns a function that appends every field of a row as text, as Dump writes it, but
// without the versions of jobs. The function is not safe for concurrent use.
func RowDump() func(b []byte, row any) []byte {
	d := dumper{nil, names{}}
	return func(b []byte, row any) []byte { return d.value(b, reflect.ValueOf(row)) }
}

// dumper prints values. Pointers to jobs are printed as their number.
type dumper struct {
	jobs  map[*cluster.Job]int // nil if the values hold no pointers to jobs
	names names                // never nil
}

// names caches the fields of each type.
type names map[reflect.Type][]field

// field is a field of a struct. Empty optional fields are not written: older builds do not have
// them, and dumps of different builds with the same state must be equal.
type field struct {
	name     string
	optional bool
}

func (n names) of(t reflect.Type) []field {
	fields, cached := n[t]
	if !cached {
		for i := range t.NumField() {
			f := t.Field(i)
			fields = append(fields, field{name: f.Name, optional: strings.HasSuffix(f.Tag.Get("codec"), ",omitempty")})
		}
		n[t] = fields
	}
	return fields
}

func (d dumper) value(b []byte, v reflect.Value) []byte {
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return append(b, "nil"...)
	}
	switch v.Type() {
	case reflect.TypeFor[*cluster.Job]():
		return fmt.Appendf(b, "job#%d", d.jobs[v.Interface().(*cluster.Job)])
	case reflect.TypeFor[time.Time]():
		return v.Interface().(time.Time).UTC().AppendFormat(b, time.RFC3339Nano)
	case reflect.TypeFor[time.Duration]():
		return append(b, time.Duration(v.Int()).String()...)
	}
	switch v.Kind() {
	case reflect.Pointer:
		return d.value(append(b, '&'), v.Elem())
	case reflect.Struct:
		return d.fields(b, v)
	case reflect.Slice, reflect.Array:
		return d.elements(b, v)
	case reflect.Map:
		return d.entries(b, v)
	}
	return scalar(b, v)
}

// scalar prints numbers as numbers, because two values of an enumeration may have one name.
func scalar(b []byte, v reflect.Value) []byte {
	switch {
	case v.CanInt():
		return strconv.AppendInt(b, v.Int(), 10)
	case v.CanUint():
		return strconv.AppendUint(b, v.Uint(), 10)
	case v.Kind() == reflect.String:
		return strconv.AppendQuote(b, v.String())
	case v.Kind() == reflect.Bool:
		return strconv.AppendBool(b, v.Bool())
	}
	return fmt.Append(b, v)
}

func (d dumper) fields(b []byte, v reflect.Value) []byte {
	b = append(b, '{')
	for i, f := range d.names.of(v.Type()) {
		if f.optional && v.Field(i).IsZero() {
			continue
		}
		if i > 0 {
			b = append(b, ' ')
		}
		b = append(append(b, f.name...), ':')
		b = d.value(b, v.Field(i))
	}
	return append(b, '}')
}

func (d dumper) elements(b []byte, v reflect.Value) []byte {
	if v.Kind() == reflect.Slice && v.IsNil() {
		return append(b, "nil"...)
	}
	b = append(b, '[')
	for i := range v.Len() {
		if i > 0 {
			b = append(b, ' ')
		}
		b = d.value(b, v.Index(i))
	}
	return append(b, ']')
}

func (d dumper) entries(b []byte, v reflect.Value) []byte {
	if v.IsNil() {
		return append(b, "nil"...)
	}
	entries := make([]string, 0, v.Len())
	for k, e := range v.Seq2() {
		entries = append(entries, string(d.value(append(d.value(nil, k), ':'), e)))
	}
	slices.Sort(entries)
	return fmt.Append(b, entries)
}
