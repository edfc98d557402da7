package jobdiff_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/jobdiff"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// A plan shows a change of any field of a job. Two fields of a key and four of the servers are no
// part of what a user submits.
func TestOf_everyField(t *testing.T) {
	t.Parallel()
	notSubmitted := map[string]bool{
		"Job.Namespace": true, "Job.ID": true,
		"Job.Version": true, "Job.CreateIndex": true, "Job.ModifyIndex": true, "Job.JobModifyIndex": true,
	}
	job := &cluster.Job{}
	fill(reflect.ValueOf(job))
	job.Canonicalize()
	must.Eq(t, wire.DiffNone, jobdiff.Of(job, job.Copy()).Type)
	changed := job.Copy()
	leaves := 0
	eachLeaf(reflect.ValueOf(changed).Elem(), "Job", func(path string, leaf reflect.Value) {
		leaves++
		before := reflect.New(leaf.Type()).Elem()
		before.Set(leaf)
		change(leaf)
		shown := jobdiff.Of(job, changed).Type != wire.DiffNone
		leaf.Set(before)
		must.Eq(t, !notSubmitted[path], shown, must.Sprint(path))
	})
	must.Greater(t, 80, leaves)
}

// fill sets each part below a pointer or a list to one that exists.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		fill(v.Elem())
	case reflect.Slice:
		if v.Type() != reflect.TypeFor[json.RawMessage]() {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(v.Index(0))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.String:
		v.SetString("x")
	}
}

// eachLeaf calls f for each value below v that is no struct, pointer or list.
func eachLeaf(v reflect.Value, path string, f func(path string, leaf reflect.Value)) {
	switch {
	case v.Kind() == reflect.Pointer:
		eachLeaf(v.Elem(), path, f)
	case v.Kind() == reflect.Slice && v.Type() != reflect.TypeFor[json.RawMessage]():
		eachLeaf(v.Index(0), path, f)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			eachLeaf(v.Field(i), path+"."+v.Type().Field(i).Name, f)
		}
	default:
		f(path, v)
	}
}

// change gives a leaf another value.
func change(leaf reflect.Value) {
	switch leaf.Kind() {
	case reflect.Bool:
		leaf.SetBool(!leaf.Bool())
	case reflect.String:
		leaf.SetString("y")
	case reflect.Slice: // of bytes
		leaf.SetBytes([]byte(`{"y":1}`))
	case reflect.Map:
		leaf.Set(reflect.MakeMap(leaf.Type()))
		value := reflect.New(leaf.Type().Elem()).Elem()
		fill(value) // a list gets one element
		leaf.SetMapIndex(reflect.ValueOf("y"), value)
	default:
		leaf.Set(reflect.ValueOf(7).Convert(leaf.Type()))
	}
}
