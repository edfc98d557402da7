package statestore

import (
	"bytes"
	"cmp"
	"slices"
	"testing"

	"github.com/shoenig/test/must"
	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// tuples returns random short strings in which the special bytes of keys are frequent.
func tuples() *rapid.Generator[[]string] {
	letter := rapid.SampledFrom([]byte{0x00, 0x01, 'a', 'b', 0xFE, 0xFF})
	text := rapid.Map(rapid.SliceOfN(letter, 0, 3), func(b []byte) string { return string(b) })
	return rapid.SliceOfN(text, 0, 3)
}

func TestKeysCompareAsTheirTuplesDo(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := tuples().Draw(t, "a"), tuples().Draw(t, "b")
		must.Eq(t, slices.Compare(a, b), bytes.Compare(newKey(a...), newKey(b...)))
	})
}

func TestAKeyIsOnlyThePrefixOfItsOwnTuples(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := tuples().Draw(t, "a"), tuples().Draw(t, "b")
		first := len(a) <= len(b) && slices.Equal(a, b[:len(a)])
		must.Eq(t, first, bytes.HasPrefix(newKey(b...), newKey(a...)))
	})
}

func TestNumbersInKeys(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Uint64().Draw(t, "a"), rapid.Uint64().Draw(t, "b")
		must.Eq(t, cmp.Compare(a, b), bytes.Compare(key{}.number(a), key{}.number(b)))
		i, j := rapid.Int().Draw(t, "i"), rapid.Int().Draw(t, "j")
		must.Eq(t, cmp.Compare(j, i), cmp.Compare(falling(i), falling(j)))
	})
}

// A string prefix of an id makes an open key that is a prefix of the id's key.
func TestAnOpenKeyIsThePrefixOfLongerIDs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pair := rapid.SliceOfN(tuples().Filter(func(s []string) bool { return len(s) > 0 }), 2, 2).Draw(t, "pair")
		prefix, whole := pair[0][0], pair[1][0]
		must.Eq(t, len(prefix) <= len(whole) && whole[:len(prefix)] == prefix, bytes.HasPrefix(newKey(whole), key{}.open(prefix)))
	})
}

func TestTheSchemaIsSound(t *testing.T) {
	t.Parallel()
	must.NoError(t, schema().Validate())
	x := indexer[cluster.Evaluation]{key: evalID}
	_, _, err := x.FromObject(&usage{})
	must.Error(t, err)
	_, _, err = x.FromObject((*cluster.Evaluation)(nil))
	must.Error(t, err)
	ok, _, err := x.FromObject(&cluster.Evaluation{})
	must.NoError(t, err)
	must.False(t, ok, must.Sprint("a row without an id is in no index"))
	_, _, err = accountIndexer{}.FromObject(&cluster.Evaluation{ID: "e"})
	must.Error(t, err)
	l := listIndexer[cluster.Evaluation]{keys: []func(*cluster.Evaluation) key{evalByQueue}}
	_, _, err = l.FromObject(&usage{})
	must.Error(t, err)
	ok, keys, err := l.FromObject(&cluster.Evaluation{ID: "e", Status: cluster.EvalComplete})
	must.NoError(t, err)
	must.False(t, ok, must.Sprint("a row that is in no list is not in the index"))
	must.SliceEmpty(t, keys)
	_, err = x.FromArgs("a string")
	must.Error(t, err)
	_, err = x.FromArgs()
	must.Error(t, err)
}
