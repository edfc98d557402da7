package invariant_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
)

// The digest covers every field of every row, also nested ones. Without this test, a new field
// that the digest misses would never be compared between replicas.
func TestDigest_coversEveryField(t *testing.T) {
	t.Parallel()
	t.Run("node", func(t *testing.T) { checkDigest(t, invariant.DigestNode) })
	t.Run("record", func(t *testing.T) { checkDigest(t, invariant.DigestDrain) })
	t.Run("job", func(t *testing.T) { checkDigest(t, invariant.DigestJob) })
	t.Run("evaluation", func(t *testing.T) { checkDigest(t, invariant.DigestEval) })
	// An allocation's digest includes only the version of its job.
	t.Run("allocation", func(t *testing.T) {
		checkDigest(t, invariant.DigestAlloc, "Job.Type", "Job.Priority", "Job.Stop", "Job.NodePool", "Job.Datacenters", "Job.Constraints", "Job.Meta",
			"Job.TaskGroups", "Job.ModifyIndex")
	})
}

// checkDigest fills a row, and changes each field below it in turn.
func checkDigest[T any](t *testing.T, digest func(*T) uint64, but ...string) {
	t.Helper()
	row := new(T)
	fill(reflect.ValueOf(row).Elem(), 1)
	full := digest(row)
	must.NotEq(t, digest(nil), full)
	must.NotEq(t, digest(new(T)), full)
	for _, path := range paths(reflect.ValueOf(row).Elem(), "") {
		other := new(T)
		fill(reflect.ValueOf(other).Elem(), 1)
		must.Eq(t, full, digest(other))
		change(reflect.ValueOf(other).Elem(), strings.Split(path, "."))
		excused := false
		for _, b := range but {
			excused = excused || path == b || strings.HasPrefix(path, b+".")
		}
		must.Eq(t, excused, full == digest(other), must.Sprint(path))
	}
}

// fill sets every field below v to a value that is not zero.
func fill(v reflect.Value, n int64) {
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Unix(n, n)))
		return
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n+int64(i))
		}
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n+1)
	case v.Kind() == reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), n+int64(i))
		}
	case v.Kind() == reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, n)
		fill(value, n+1)
		v.SetMapIndex(key, value)
	case v.CanInt():
		v.SetInt(n + 1)
	case v.CanUint():
		v.SetUint(uint64(n) + 1)
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.Kind() == reflect.String:
		v.SetString(fmt.Sprint("value ", n))
	}
}

// paths returns the path of every field below v.
func paths(v reflect.Value, at string) []string {
	if v.Type() == reflect.TypeFor[time.Time]() {
		return []string{at}
	}
	join := func(name string) string { return strings.TrimPrefix(at+"."+name, ".") }
	var all []string
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			all = append(all, paths(v.Field(i), join(v.Type().Field(i).Name))...)
		}
	case reflect.Pointer:
		all = append(paths(v.Elem(), at), join("nil"))
	case reflect.Slice:
		all = append(paths(v.Index(1), join("1")), join("short"))
	case reflect.Array:
		all = paths(v.Index(v.Len()-1), join(fmt.Sprint(v.Len()-1)))
	case reflect.Map:
		all = []string{join("nil"), join("value")}
	default:
		all = []string{at}
	}
	return all
}

// change changes the field with that path below v.
func change(v reflect.Value, path []string) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(v.Interface().(time.Time).Add(1)))
		return
	}
	switch last := len(path) == 1; v.Kind() {
	case reflect.Struct:
		change(v.FieldByName(path[0]), path[1:])
	case reflect.Pointer:
		if last && path[0] == "nil" {
			v.SetZero()
			return
		}
		change(v.Elem(), path)
	case reflect.Slice, reflect.Array:
		switch {
		case path[0] == "short":
			v.Set(v.Slice(0, 1))
		default:
			change(v.Index(v.Len()-1), path[1:])
		}
	case reflect.Map:
		if path[0] == "nil" {
			v.SetZero()
			return
		}
		for _, k := range v.MapKeys() {
			value := reflect.New(v.Type().Elem()).Elem()
			v.SetMapIndex(k, value)
		}
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.String:
		v.SetString(v.String() + "!")
	default:
		if v.CanInt() {
			v.SetInt(v.Int() + 1)
		} else {
			v.SetUint(v.Uint() + 1)
		}
	}
}

// The digests of an entry are equal for equal states, and differ for different ones.
func TestDigest_ofAnEntry(t *testing.T) {
	t.Parallel()
	one, two := web(t, invariant.Options{}, 3, 1), web(t, invariant.Options{}, 3, 1)
	must.Eq(t, invariant.Digest(one.last), invariant.Digest(two.last))
	one.drain("n1", 0)
	two.drain("n1", time.Hour)
	must.NotEq(t, invariant.Digest(one.last), invariant.Digest(two.last))
	a, b := &cluster.Evaluation{ID: "ab", JobID: "c"}, &cluster.Evaluation{ID: "a", JobID: "bc"}
	must.NotEq(t, invariant.DigestEval(a), invariant.DigestEval(b))
}
