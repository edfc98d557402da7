package cluster_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Readers of the original must not see an edit of a copy.
func TestCopy_sharesNothing(t *testing.T) {
	t.Parallel()
	t.Run("node", func(t *testing.T) {
		checkCopy(t, (*cluster.Node).Copy, ".Drain.Paused", ".Drain.VolumesLeft", ".Drain.Unconfirmed", ".Drain.DataNotCopied")
	})
	t.Run("drain", func(t *testing.T) {
		checkCopy(t, (*cluster.Drain).Copy, ".Paused", ".VolumesLeft", ".Unconfirmed", ".DataNotCopied")
	})
	t.Run("drain metadata", func(t *testing.T) { checkCopy(t, (*cluster.DrainMetadata).Copy) })
	t.Run("job", func(t *testing.T) { checkCopy(t, (*cluster.Job).Copy) })
	t.Run("task group", func(t *testing.T) { checkCopy(t, (*cluster.TaskGroup).Copy) })
	t.Run("task", func(t *testing.T) { checkCopy(t, (*cluster.Task).Copy) })
	t.Run("driver", func(t *testing.T) { checkCopy(t, (*cluster.DriverInfo).Copy) })
	t.Run("volume", func(t *testing.T) { checkCopy(t, (*cluster.Volume).Copy) })
	t.Run("volume claim", func(t *testing.T) { checkCopy(t, (*cluster.VolumeClaim).Copy) })
	t.Run("volume holds", func(t *testing.T) { checkCopy(t, (*cluster.VolumeHolds).Copy) })
	t.Run("storage plugin", func(t *testing.T) { checkCopy(t, (*cluster.StoragePlugin).Copy) })
	t.Run("unlisted allocations", func(t *testing.T) { checkCopy(t, (*cluster.UnlistedAllocs).Copy) })
	t.Run("task states", func(t *testing.T) { checkCopy(t, (*cluster.TaskStates).Copy) })
	t.Run("allocation", func(t *testing.T) {
		checkCopy(t, (*cluster.Allocation).Copy, ".Job", ".Devices", ".Ports", ".Cores", ".TaskStates", ".VolumeHolds", ".DataIn", ".DataOut")
	})
	t.Run("deployment status", func(t *testing.T) { checkCopy(t, (*cluster.DeploymentStatus).Copy) })
	t.Run("evaluation", func(t *testing.T) { checkCopy(t, (*cluster.Evaluation).Copy) })
}

// Readers of the wire form distinguish nil from empty.
func TestCopy_keepsNilNil(t *testing.T) {
	t.Parallel()
	must.Eq(t, &cluster.Node{}, (&cluster.Node{}).Copy())
	must.Eq(t, &cluster.Job{}, (&cluster.Job{}).Copy())
	must.Eq(t, &cluster.Drain{}, (&cluster.Drain{}).Copy())
	must.Eq(t, &cluster.Evaluation{}, (&cluster.Evaluation{}).Copy())
	must.Eq(t, &cluster.Allocation{}, (&cluster.Allocation{}).Copy())

	must.True(t, (&cluster.Node{}).Copy().Meta == nil)
	must.False(t, (&cluster.Node{Meta: map[string]string{}}).Copy().Meta == nil)
	must.False(t, (&cluster.Job{TaskGroups: []*cluster.TaskGroup{}}).Copy().TaskGroups == nil)
}

// A damaged job is copied as it is. Copy does not judge it.
func TestCopy_keepsHoles(t *testing.T) {
	t.Parallel()
	job := &cluster.Job{TaskGroups: []*cluster.TaskGroup{nil, {Tasks: []*cluster.Task{nil}}}}
	must.Eq(t, job, job.Copy())
}

// The check above is useless if it does not find what a shallow copy shares.
func TestSharedPaths_findsALazyCopy(t *testing.T) {
	t.Parallel()
	node := new(cluster.Node)
	fill(reflect.ValueOf(node).Elem(), 1)
	lazy := *node
	must.SliceContainsAll(t,
		[]string{".Attributes", ".Meta", ".Links", ".Drivers", ".Devices", ".Network", ".Cores", ".StoragePlugins", ".Drain", ".LastDrain", ".Events", ".Unlisted"},
		sharedPaths(reflect.ValueOf(node), reflect.ValueOf(&lazy), ""))
}

// checkCopy fills every field of a T, copies it, and searches for shared memory. The paths in shared
// must be shared.
func checkCopy[T any](t *testing.T, copyOf func(*T) *T, shared ...string) {
	t.Helper()
	must.Nil(t, copyOf(nil))

	original := new(T)
	fill(reflect.ValueOf(original).Elem(), 1)
	copied := copyOf(original)

	must.Eq(t, original, copied)
	must.SliceContainsAll(t, shared, sharedPaths(reflect.ValueOf(original), reflect.ValueOf(copied), ""))
}

var timeType = reflect.TypeFor[time.Time]()

// fill sets every field below v to something that is not its zero value.
func fill(v reflect.Value, seed int64) {
	if v.Type() == timeType {
		v.Set(reflect.ValueOf(time.Unix(seed, 0).UTC()))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), seed+int64(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), seed)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i), seed+int64(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), seed+int64(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, seed)
		fill(value, seed)
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString(fmt.Sprint("value ", seed))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(seed)
	case reflect.Float64:
		v.SetFloat(float64(seed))
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(uint64(seed%100) + 1)
	default:
		panic("fill does not support " + v.Kind().String())
	}
}

// sharedPaths returns the paths below a and b, of equal shape, at which both
// hold the same pointer, map or backing array.
func sharedPaths(a, b reflect.Value, path string) []string {
	if a.Type() == timeType {
		return nil
	}
	var paths []string
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			paths = append(paths, sharedPaths(a.Field(i), b.Field(i), path+"."+a.Type().Field(i).Name)...)
		}
	case reflect.Pointer:
		if a.Pointer() == b.Pointer() {
			return []string{path}
		}
		return sharedPaths(a.Elem(), b.Elem(), path)
	case reflect.Slice:
		if a.Pointer() == b.Pointer() {
			return []string{path}
		}
		for i := range a.Len() {
			paths = append(paths, sharedPaths(a.Index(i), b.Index(i), fmt.Sprintf("%s[%d]", path, i))...)
		}
	case reflect.Map:
		if a.Pointer() == b.Pointer() {
			return []string{path}
		}
		for _, key := range a.MapKeys() {
			paths = append(paths, sharedPaths(a.MapIndex(key), b.MapIndex(key), fmt.Sprintf("%s[%v]", path, key))...)
		}
	}
	return paths
}
