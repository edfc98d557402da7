package world

import (
	"bytes"
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// machine is a state machine, and how much of the log it has seen.
type machine struct {
	fsm     *shims.FSM
	observe func(shims.Applied) // never nil
	// applied is how many entries of the log it has applied.
	applied int
}

func newMachine(observe func(shims.Applied)) *machine {
	return &machine{fsm: shims.NewFSM(shims.FSMConfig{OnApply: observe}), observe: observe}
}

// catchUp applies the entries that the machine has not seen. It returns the
// response to the last of the log, nil if that is no message.
func (m *machine) catchUp(entries []logEntry) (response shims.Response, err error) {
	for m.applied < len(entries) && err == nil {
		e := entries[m.applied]
		m.applied++
		response = nil
		switch index := uint64(m.applied); {
		case e.begin != nil:
			err = m.write(index, e.begin)
		case e.data != nil:
			response, err = m.fsm.ApplyEntry(index, e.data)
		}
	}
	return response, err
}

// write writes what no message of the log could: those who observe are shown an
// entry without one.
func (m *machine) write(index uint64, do func(*statestore.Txn) error) error {
	before := m.state()
	txn := m.fsm.Store().Begin(index)
	defer txn.Abort()
	if err := do(txn); err != nil {
		return err
	}
	txn.Commit()
	m.observe(shims.Applied{Index: index, Response: shims.Skipped{}, Before: before, After: m.state()})
	return nil
}

// state is the machine's newest state.
func (m *machine) state() *statestore.Snapshot { return m.fsm.Store().Snapshot() }

// SameStates says which server comes to another state by the log than the leader.
// Each catches up first. Where servers are views, another machine applies the
// whole log.
func (w *World) SameStates() error {
	want, err := w.dump(w.leader.server.machine)
	if err != nil {
		return err
	}
	others := []*machine{newMachine(func(shims.Applied) {})}
	if !w.options.Views {
		others = nil
		for _, s := range w.servers {
			others = append(others, s.machine)
		}
	}
	for i, m := range others {
		got, err := w.dump(m)
		if err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("server %d has another state than the leader: %s", i, difference(got, want))
		}
	}
	return nil
}

// dump is a machine's state, once it has applied the whole log.
func (w *World) dump(m *machine) ([]byte, error) {
	if _, err := m.catchUp(w.log.entries); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := m.state().Dump(&b); err != nil {
		return nil, fmt.Errorf("dumping a state: %w", err)
	}
	return b.Bytes(), nil
}

// difference shows the first lines in which two dumps differ.
func difference(got, want []byte) string {
	ours, theirs := bytes.Split(got, []byte("\n")), bytes.Split(want, []byte("\n"))
	for i := range min(len(ours), len(theirs)) {
		if !bytes.Equal(ours[i], theirs[i]) {
			return fmt.Sprintf("%s\ninstead of %s", ours[i], theirs[i])
		}
	}
	return fmt.Sprintf("%d lines instead of %d", len(ours), len(theirs))
}
