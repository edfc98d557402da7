package invariant

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/bits"
	"reflect"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/witness/applied"
)

// digest is a running hash of values. It is the same on every machine.
type digest uint64

const (
	digestStart digest = 0x9E3779B97F4A7C15
	digestPrime uint64 = 0x9FB21C651E98DF25
)

func (d digest) number(n uint64) digest {
	hi, lo := bits.Mul64(uint64(d)^n, digestPrime)
	return digest(hi ^ lo ^ uint64(d)>>29)
}

func (d digest) int(n int) digest { return d.number(uint64(n)) }

// text adds a text and its length. So "ab" and "c" differ from "a" and "bc".
func (d digest) text(s string) digest {
	d = d.int(len(s))
	for len(s) >= 8 {
		d = d.number(binary.LittleEndian.Uint64([]byte(s[:8])))
		s = s[8:]
	}
	last := uint64(0)
	for i := range len(s) {
		last = last<<8 | uint64(s[i])
	}
	return d.number(last)
}

// missing stands for nil. It differs from the sizes of lists and texts.
const missing = 1 << 63

// value adds all fields of a row, also nested ones. A time zone does not matter. Nil lists are
// empty lists. Of the job of an allocation it adds only the version, because the digest of the
// job's own entry has covered its content.
func (d digest) value(v reflect.Value) digest {
	switch kind := v.Kind(); {
	case kind == reflect.String:
		return d.text(v.String())
	case kind == reflect.Bool && v.Bool():
		return d.number(1)
	case kind == reflect.Bool:
		return d.number(2)
	case v.CanInt():
		return d.number(uint64(v.Int()))
	case v.CanUint():
		return d.number(v.Uint())
	case v.CanFloat():
		return d.number(math.Float64bits(v.Float()))
	case kind == reflect.Struct:
		return d.fields(v)
	case kind == reflect.Slice || kind == reflect.Array:
		d = d.int(v.Len())
		for i := range v.Len() {
			d = d.value(v.Index(i))
		}
		return d
	case v.IsNil():
		return d.number(missing)
	case kind == reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
		d = d.int(len(keys))
		for _, k := range keys {
			d = d.text(k.String()).value(v.MapIndex(k))
		}
		return d
	}
	if job, is := reflect.TypeAssert[*cluster.Job](v); is {
		return d.text(string(job.Namespace)).text(string(job.ID)).number(job.Version).number(job.CreateIndex).number(job.JobModifyIndex)
	}
	return d.value(v.Elem())
}

// fields adds the fields of a struct.
func (d digest) fields(v reflect.Value) digest {
	if t, is := reflect.TypeAssert[time.Time](v); is {
		if t.IsZero() {
			return d.number(missing)
		}
		return d.number(uint64(t.Unix())).int(t.Nanosecond())
	}
	for i := range v.NumField() {
		d = d.value(v.Field(i))
	}
	return d
}

// digestOf returns the digest of a row. Nil is a missing row.
func digestOf[T any](row *T) digest {
	if row == nil {
		return 0
	}
	return digestStart.value(reflect.ValueOf(row).Elem())
}

// Digest returns a hash of all rows that the entry may have written, as they are after it.
// Equal rows have equal digests on every machine.
func Digest(a shims.Applied) uint64 {
	var e entry
	e.ids.collect(a, applied.Entry(a).Touched)
	return uint64(e.digest(a))
}

func (e *entry) digest(a shims.Applied) digest {
	d := digestStart.number(a.Index).number(uint64(a.Type))
	d = digestRows(d, e.ids.Nodes, a.After.Node)
	d = digestRows(d, e.ids.Jobs, a.After.Job)
	d = digestRows(d, e.ids.Allocs, a.After.Alloc)
	d = digestRows(d, e.ids.evals, a.After.Eval)
	return digestRows(d, e.ids.records, a.After.DrainRecord)
}

// digestRows adds the rows with the ids.
func digestRows[K, T any](d digest, ids []K, row func(K) *T) digest {
	for _, id := range ids {
		d = d.number(uint64(digestOf(row(id))))
	}
	return d
}
