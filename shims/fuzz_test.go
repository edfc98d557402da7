package shims_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// seedEntries adds an entry of each message, full and empty, and a random log.
func seedEntries(f *testing.F) {
	for _, m := range append(fullMessages(), emptyMessages()...) {
		if data, err := shims.Encode(m); err == nil {
			f.Add(data)
		}
	}
	for _, data := range randomLog(f, 1, 60) {
		f.Add(data)
	}
	f.Add([]byte{byte(shims.IgnorableFlag), 1})
}

// mustBeRefused checks that an entry was refused because it is damaged or of a newer version.
func mustBeRefused(t *testing.T, err error) {
	t.Helper()
	must.True(t, errors.Is(err, shims.ErrBroken) || errors.Is(err, cluster.ErrVersion), must.Sprint(err))
}

// Decode does not panic for any bytes, and an accepted message encodes to an equivalent entry.
func FuzzDecode(f *testing.F) {
	seedEntries(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := shims.Decode(data)
		if err != nil {
			mustBeRefused(t, err)
			must.Nil(t, m)
			return
		}
		if m == nil {
			must.True(t, shims.MessageType(data[0]).Ignorable())
			return
		}
		again := encode(t, m)
		m2, err := shims.Decode(again)
		must.NoError(t, err)
		must.True(t, bytes.Equal(again, encode(t, m2)), must.Sprint("one message, one entry"))
	})
}

// Two servers that apply any bytes reach the same state without a panic. If they refuse them, the
// state does not change.
//
//race:skip one goroutine
func FuzzApplyEntry(f *testing.F) {
	seedEntries(f)
	start := newHistory(f, shims.FSMConfig{})
	for i, data := range randomLog(f, 2, 120) {
		_, err := start.fsm.ApplyEntry(uint64(i+1), data)
		must.NoError(f, err)
		start.next = uint64(i + 2)
	}
	snapshot := persist(f, start.fsm)
	f.Fuzz(func(t *testing.T, data []byte) {
		var dumps [2]string
		for i := range dumps {
			fsm := shims.NewFSM(shims.FSMConfig{})
			restore(t, fsm, snapshot)
			before := dump(t, fsm)
			response, err := fsm.ApplyEntry(start.next, data)
			dumps[i] = dump(t, fsm)
			if err != nil {
				mustBeRefused(t, err)
				must.Eq(t, before, dumps[i])
				continue
			}
			must.NotNil(t, response)
			must.Eq(t, start.next, fsm.Store().Snapshot().Index())
		}
		must.Eq(t, dumps[0], dumps[1])
	})
}
