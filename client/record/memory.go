package record

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/pathname"
)

// Memory is a [Store] without a disk, for tests and the simulator. It is for one goroutine.
//
// A change that returns nil survives a crash, like one of [Disk]. A change that fails is lost, or it
// is seen until the next crash, and the crash decides whether it stays.
type Memory struct {
	// Fail decides about each change before it is made. Nil lets all succeed.
	Fail func(Change) Failure

	seen    map[string][]byte // what All returns
	durable map[string][]byte // what a crash cannot take
	damaged map[string]Damaged
}

var _ Store = (*Memory)(nil)

// Change is a change of a record.
type Change struct {
	Key    string
	Delete bool
}

// Failure says whether and how a change fails.
type Failure int

// The values of [Failure].
const (
	// Succeed makes the change and returns nil.
	Succeed Failure = iota
	// Refuse returns [ErrRefused], and the old record stays: the disk is full.
	Refuse
	// Unsynced makes the change and returns [ErrUnsynced]: a crash may take it back.
	Unsynced
)

// Errors of [Memory].
var (
	ErrRefused  = errors.New("the disk refused the change")
	ErrUnsynced = errors.New("the disk did not sync the change")
)

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{seen: map[string][]byte{}, durable: map[string][]byte{}, damaged: map[string]Damaged{}}
}

func (m *Memory) change(c Change, apply func(map[string][]byte)) error {
	failure := Succeed
	if m.Fail != nil {
		failure = m.Fail(c)
	}
	switch failure {
	case Refuse:
		return fmt.Errorf("record %s: %w", c.Key, ErrRefused)
	case Unsynced:
		apply(m.seen)
		return fmt.Errorf("record %s: %w", c.Key, ErrUnsynced)
	case Succeed:
	}
	apply(m.seen)
	apply(m.durable)
	return nil
}

// Put implements [Store].
func (m *Memory) Put(key string, content []byte) error {
	if key == "" {
		return errors.New("record: the key is empty")
	}
	kept := slices.Clone(content)
	return m.change(Change{Key: key}, func(to map[string][]byte) { to[key] = kept })
}

// Delete implements [Store].
func (m *Memory) Delete(key string) error {
	return m.change(Change{Key: key, Delete: true}, func(from map[string][]byte) { delete(from, key) })
}

// All implements [Store].
func (m *Memory) All() ([]Record, []Damaged, error) {
	var all []Record
	for _, key := range slices.Sorted(maps.Keys(m.seen)) {
		all = append(all, Record{Key: key, Content: slices.Clone(m.seen[key])})
	}
	var damaged []Damaged
	for _, name := range slices.Sorted(maps.Keys(m.damaged)) {
		damaged = append(damaged, m.damaged[name])
	}
	return all, damaged, nil
}

// Discard implements [Store].
func (m *Memory) Discard(d Damaged) error {
	delete(m.damaged, d.Name)
	return nil
}

// Crash is the loss of power. For each record with a change that was not synced, lost decides whether
// the change is lost; it is called in the order of keys. Nil loses them all.
func (m *Memory) Crash(lost func(key string) bool) {
	keys := map[string]bool{}
	for key := range m.seen {
		keys[key] = true
	}
	for key := range m.durable {
		keys[key] = true
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		now, isSeen := m.seen[key]
		before, was := m.durable[key]
		if isSeen == was && slices.Equal(now, before) {
			continue
		}
		switch stays := lost != nil && !lost(key); {
		case stays && isSeen:
			m.durable[key] = now
		case stays:
			delete(m.durable, key)
		}
	}
	m.seen = maps.Clone(m.durable)
}

// Damage damages a record: the next All sets it aside. It does nothing if there is none.
func (m *Memory) Damage(key string) {
	if _, exists := m.seen[key]; !exists {
		return
	}
	delete(m.seen, key)
	delete(m.durable, key)
	name := pathname.Encode(key)
	m.damaged[name] = Damaged{Name: name, Key: key, Path: name + aside, Err: fmt.Errorf("the record of %q is damaged: %w", key, errChecksum)}
}
