package statestore_test

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/journal"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// rowTypes are the types of the rows of all tables. The rows of changing are also allocations.
func rowTypes() []reflect.Type {
	return []reflect.Type{
		reflect.TypeFor[cluster.Node](),
		reflect.TypeFor[cluster.Drain](),
		reflect.TypeFor[cluster.Job](),
		reflect.TypeFor[cluster.Allocation](),
		reflect.TypeFor[cluster.Evaluation](),
		reflect.TypeFor[cluster.Volume](),
		reflect.TypeFor[cluster.VolumeClaim](),
		reflect.TypeFor[journal.Journal](),
		reflect.TypeFor[journal.Running](),
		reflect.TypeFor[statestore.GroupTimes](),
		reflect.TypeFor[statestore.Pause](),
		reflect.TypeFor[statestore.Usage](),
		reflect.TypeFor[statestore.Health](),
		reflect.TypeFor[statestore.Mark](),
		reflect.TypeFor[statestore.Counters](),
		reflect.TypeFor[statestore.Version](),
	}
}

// filled returns a new value of the type in which nothing is zero: slices and
// maps have one element, and numbers and strings differ from each other.
func filled(t reflect.Type) reflect.Value {
	v, count := reflect.New(t), 0
	fill(v.Elem(), &count)
	return v
}

func fill(v reflect.Value, count *int) {
	*count++
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(time.Unix(1_700_000_000+int64(*count), 123_456_789).UTC()))
		return
	}
	switch {
	case v.CanInt():
		v.SetInt(int64(*count%100 + 1))
	case v.CanUint():
		v.SetUint(uint64(*count%100 + 1))
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString(fmt.Sprint("text", *count))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), count)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), count)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), count)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), count)
	case reflect.Map:
		k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(k, count)
		fill(e, count)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(k, e)
	}
}

// change is one possible difference from the filled value.
type change struct {
	path string
	do   func(root reflect.Value)
}

// changes returns all single changes to a filled value of the type.
func changes(t reflect.Type) []change {
	var all []change
	collect(filled(t).Elem(), t.Name(), func(root reflect.Value) reflect.Value { return root }, &all)
	return all
}

func collect(v reflect.Value, path string, at func(reflect.Value) reflect.Value, all *[]change) {
	add := func(how string, do func(reflect.Value)) {
		*all = append(*all, change{path + " " + how, func(root reflect.Value) { do(at(root)) }})
	}
	zero := func(v reflect.Value) { v.SetZero() }
	if v.Type() == reflect.TypeFor[time.Time]() {
		add("zero", zero)
		add("later", func(v reflect.Value) { v.Set(reflect.ValueOf(v.Interface().(time.Time).Add(1))) })
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			name := path + "." + f.Name
			collect(v.Field(i), name, func(r reflect.Value) reflect.Value { return at(r).Field(i) }, all)
			if f.Tag.Get("codec") == ",omitempty" { // no row has it: Canonicalize makes it nil
				*all = slices.DeleteFunc(*all, func(c change) bool { return c.path == name+" empty" })
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			collect(v.Index(i), fmt.Sprintf("%s[%d]", path, i), func(r reflect.Value) reflect.Value { return at(r).Index(i) }, all)
		}
	case reflect.Pointer:
		add("nil", zero)
		collect(v.Elem(), path, func(r reflect.Value) reflect.Value { return at(r).Elem() }, all)
	case reflect.Slice:
		add("nil", zero)
		add("empty", func(v reflect.Value) { v.Set(reflect.MakeSlice(v.Type(), 0, 0)) })
		add("longer", func(v reflect.Value) { v.Set(reflect.Append(v, v.Index(0))) })
		collect(v.Index(0), path+"[0]", func(r reflect.Value) reflect.Value { return at(r).Index(0) }, all)
	case reflect.Map:
		add("nil", zero)
		add("empty", func(v reflect.Value) { v.Set(reflect.MakeMap(v.Type())) })
		other := reflect.New(v.Type().Key()).Elem()
		add("longer", func(v reflect.Value) { v.SetMapIndex(other, reflect.Zero(v.Type().Elem())) })
		add("other value", func(v reflect.Value) { v.SetMapIndex(v.MapKeys()[0], reflect.Zero(v.Type().Elem())) })
	case reflect.String:
		add("other", func(v reflect.Value) { v.SetString(v.String() + "'") })
	case reflect.Bool:
		add("other", func(v reflect.Value) { v.SetBool(!v.Bool()) })
	default:
		add("other", func(v reflect.Value) {
			if v.CanInt() {
				v.SetInt(v.Int() + 1)
			} else {
				v.SetUint(v.Uint() + 1)
			}
		})
	}
}
