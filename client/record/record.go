package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/pathname"
)

// ErrNewer means that a record was written by a newer client. Run that one, or an even newer one.
var ErrNewer = errors.New("a newer client wrote this record")

// Store holds records by key. A key is not empty. Two writes of one key must not run at the same
// time. All other methods may.
type Store interface {
	// Put writes a record. After an error the record is the old one or the new one, also after a
	// crash: the caller writes it again or deletes it, before it acts on it.
	Put(key string, content []byte) error
	// Delete deletes a record. It is no error if there is none. After an error the record may
	// still exist.
	Delete(key string) error
	// All returns the records, by key, and what is damaged. It is for the start of a client. A record
	// that cannot be read for now is an error: it is neither gone nor damaged.
	All() ([]Record, []Damaged, error)
	// Discard deletes what was set aside. Its owner has destroyed what the record was about.
	Discard(Damaged) error
}

// Record is one record.
type Record struct {
	Key     string
	Content []byte
}

// Damaged is a record that cannot be read.
type Damaged struct {
	// Name is the encoded key: see [pathname.Encode]. A cgroup or a folder that was named with the
	// same function has this name too.
	Name string
	// Key is the key, or empty if Name has only its hash.
	Key string
	// Path is where the file was set aside.
	Path string
	// Err states what is wrong, with the path.
	Err error
}

// Is reports whether the damaged record had this key.
func (d Damaged) Is(key string) bool { return d.Name == pathname.Encode(key) }

// Table is the records of one kind, with contents of type T as JSON. The zero Table is not usable: see
// [NewTable].
type Table[T any] struct {
	store   Store
	kind    string
	version int
}

// NewTable returns the records of a kind. The kind begins each key, and contains no slash. The version
// is that of T: a client that changes the meaning of T increases it, and still reads the older
// ones. Tables of different kinds can share a store.
func NewTable[T any](store Store, kind string, version int) Table[T] {
	return Table[T]{store: store, kind: kind, version: version}
}

// content is a record of a table.
type content[T any] struct {
	Version int `json:"version"`
	Value   T   `json:"value"`
}

// Put writes the record of an id. See [Store.Put] for errors.
func (t Table[T]) Put(id string, value T) error {
	data, err := json.Marshal(content[T]{Version: t.version, Value: value})
	if err != nil {
		return fmt.Errorf("record %s %s: %w", t.kind, id, err)
	}
	return t.store.Put(t.key(id), data)
}

// Delete deletes the record of an id. See [Store.Delete] for errors.
func (t Table[T]) Delete(id string) error { return t.store.Delete(t.key(id)) }

func (t Table[T]) key(id string) string { return t.kind + "/" + id }

// Row is a record of a table.
type Row[T any] struct {
	ID string
	// Version is that of the client that wrote the record, at most the table's.
	Version int
	Value   T
}

// Select returns the rows of the table among the records that [Store.All] returned, by id. A
// record of a newer version, or one that is no T, is an error: it was written by another client, and
// is not damaged.
func (t Table[T]) Select(all []Record) ([]Row[T], error) {
	var rows []Row[T]
	for _, r := range all {
		id, ok := strings.CutPrefix(r.Key, t.kind+"/")
		if !ok {
			continue
		}
		// The version first: a newer value may have another form.
		var version struct {
			Version int `json:"version"`
		}
		if err := json.Unmarshal(r.Content, &version); err != nil {
			return nil, fmt.Errorf("record %s %s: %w", t.kind, id, err)
		}
		if version.Version > t.version {
			return nil, fmt.Errorf("record %s %s has version %d, and this client reads version %d: %w", t.kind, id, version.Version, t.version, ErrNewer)
		}
		var c content[T]
		if err := json.Unmarshal(r.Content, &c); err != nil {
			return nil, fmt.Errorf("record %s %s: %w", t.kind, id, err)
		}
		rows = append(rows, Row[T]{ID: id, Version: c.Version, Value: c.Value})
	}
	return rows, nil
}

// Owns reports whether a damaged record may be one of the table, and returns its id, or an empty id
// if it is too long to be known.
func (t Table[T]) Owns(d Damaged) (id string, owns bool) {
	if d.Key != "" {
		return strings.CutPrefix(d.Key, t.kind+"/")
	}
	return "", strings.HasPrefix(d.Name, strings.TrimSuffix(pathname.Encode(t.kind+"/"), "="))
}

// Is reports whether a damaged record is the table's record of an id.
func (t Table[T]) Is(d Damaged, id string) bool { return d.Is(t.key(id)) }

func sorted(all []Record) []Record {
	slices.SortFunc(all, func(a, b Record) int { return strings.Compare(a.Key, b.Key) })
	return all
}
