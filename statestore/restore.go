package statestore

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/hashicorp/go-msgpack/v2/codec"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/attributes"
)

// Restore returns a new store with the state that [Persist] wrote. An error means that the
// input is not such a state or is damaged; the caller should keep its store. The error wraps
// [cluster.ErrVersion] if this build does not understand the cluster version of the state.
func Restore(r io.Reader) (*Store, error) {
	s := New()
	t := s.Begin(0)
	defer t.Abort()
	in := &restorer{
		txn:     t,
		in:      summedReader{bufio.NewReader(r), checksum()},
		decoder: codec.NewDecoderBytes(nil, handle()),
		drains:  make(map[cluster.DrainID]bool),
		nodes:   make(map[cluster.NodeID]cluster.NodeID),
	}
	if err := in.all(); err != nil {
		return nil, fmt.Errorf("restoring the state: %w", err)
	}
	t.Commit()
	state := s.Snapshot()
	s.history.begin(moment{state.Index(), state.History()})
	return s, nil
}

// restorer reads frames into a transaction.
type restorer struct {
	txn     *Txn
	in      summedReader
	decoder *codec.Decoder
	row     bytes.Buffer
	// last is the kind of the last frame. lastID is the id of its row.
	last   kind
	lastID key
	// versions are the versions of jobs read so far.
	versions []*cluster.Job
	// drains are the ids of drains read so far, running or ended.
	drains map[cluster.DrainID]bool
	// nodes are the ids of nodes read so far. Allocations share their memory.
	nodes map[cluster.NodeID]cluster.NodeID
}

func (r *restorer) all() error {
	if err := r.head(); err != nil {
		return err
	}
	for {
		k, err := r.in.ReadByte()
		if err != nil {
			return whileReading("the kind of a row", err)
		}
		if kind(k) == kindEnd {
			return r.end()
		}
		if err := r.frame(kind(k)); err != nil {
			return err
		}
	}
}

func (r *restorer) head() error {
	found := make([]byte, len(magic))
	if _, err := io.ReadFull(r.in, found); err != nil {
		return whileReading("the beginning", err)
	}
	if string(found) != magic {
		return errors.New("it is not a persisted state")
	}
	version, err := binary.ReadUvarint(r.in)
	if err != nil {
		return whileReading("the cluster version", err)
	}
	if err := cluster.Require(cluster.Version(version)); err != nil {
		return err
	}
	r.txn.RaiseClusterVersion(cluster.Version(version))
	return nil
}

// end compares the checksum.
func (r *restorer) end() error {
	sum := r.in.sum.Sum64()
	found := make([]byte, 8)
	if _, err := io.ReadFull(r.in, found); err != nil {
		return whileReading("the checksum", err)
	}
	if binary.BigEndian.Uint64(found) != sum {
		return errors.New("its checksum does not match")
	}
	return nil
}

func (r *restorer) frame(k kind) error {
	size, err := binary.ReadUvarint(r.in)
	if err != nil {
		return whileReading("the length of a row", err)
	}
	if size > maxFrame {
		return fmt.Errorf("a row of %d bytes, more than %d", size, maxFrame)
	}
	// The buffer grows with the bytes that arrive, not with the length that a frame claims.
	r.row.Reset()
	if _, err := io.CopyN(&r.row, r.in, int64(size)); err != nil {
		return whileReading("a row", err)
	}
	if k < r.last {
		return fmt.Errorf("a row of kind %d after one of kind %d", k, r.last)
	}
	if k > r.last {
		r.last, r.lastID = k, nil
	}
	if err := r.insert(k); err != nil {
		return fmt.Errorf("a row of kind %d: %w", k, err)
	}
	return nil
}

func (r *restorer) insert(k kind) error {
	switch k {
	case kindCounter:
		return r.counter()
	case kindVersion:
		j := new(cluster.Job)
		r.versions = append(r.versions, j)
		return r.decode(j)
	case kindNode:
		return r.node()
	case kindRecord:
		return r.record()
	case kindJob:
		return r.job()
	case kindAlloc:
		return r.alloc()
	case kindEval:
		_, err := restoreRow(r, TableEvals, evalID)
		return err
	case kindVolume:
		_, err := restoreRow(r, TableVolumes, volumeID)
		return err
	case kindClaim:
		_, err := restoreRow(r, TableClaims, claimID)
		return err
	case kindJournal:
		_, err := restoreRow(r, tableJournals, journalID)
		return err
	case kindJournalGroup:
		_, err := restoreRow(r, tableJournalGroups, runningGroupID)
		return err
	case kindTimes:
		_, err := restoreRow(r, tableTimes, groupTimesID)
		return err
	case kindPause:
		_, err := restoreRow(r, tablePause, pauseID)
		return err
	}
	return errors.New("there is no such kind")
}

// counter restores one of the counters.
func (r *restorer) counter() error {
	var c counter
	if err := r.decode(&c); err != nil {
		return err
	}
	if err := r.follow(counterKey(&c)); err != nil {
		return err
	}
	counter := r.txn.rows.counters.named(c.Key)
	if counter == nil {
		return fmt.Errorf("there is no counter %q", c.Key)
	}
	*counter = c.Value
	return nil
}

// restoreRow inserts the row of the current frame.
func restoreRow[T any](r *restorer, table string, id func(*T) key) (*T, error) {
	row := new(T)
	if err := r.decode(row); err != nil {
		return nil, err
	}
	return row, insertRow(r, table, row, id(row))
}

// insertRow inserts a row whose id is above the previous id.
func insertRow[T any](r *restorer, table string, row *T, id key) error {
	if err := r.follow(id); err != nil {
		return err
	}
	r.txn.rows.insert(table, row)
	return nil
}

// follow checks that the id of a row is above the previous id.
func (r *restorer) follow(id key) error {
	if id == nil {
		return errors.New("it has no id")
	}
	if r.lastID != nil && bytes.Compare(id, r.lastID) <= 0 {
		return errors.New("its id is not above that of the row before")
	}
	r.lastID = id
	return nil
}

func (r *restorer) node() error {
	n, err := restoreRow(r, TableNodes, nodeID)
	if err != nil {
		return err
	}
	r.nodes[n.ID] = n.ID
	if !n.Draining() {
		return nil
	}
	if n.Drain.ID == "" || n.Drain.NodeID != n.ID {
		return fmt.Errorf("its drain %q is of node %q", n.Drain.ID, n.Drain.NodeID)
	}
	r.txn.rows.written.changes.toggle(n.ID, true)
	return r.drain(n.Drain)
}

func (r *restorer) record() error {
	d, err := restoreRow(r, TableDrains, recordID)
	if err != nil {
		return err
	}
	r.txn.rows.counters.Records++
	return r.drain(d)
}

// drain checks that no other drain has the id.
func (r *restorer) drain(d *cluster.Drain) error {
	if r.drains[d.ID] {
		return fmt.Errorf("there is another drain %s", d.ID)
	}
	r.drains[d.ID] = true
	return nil
}

func (r *restorer) job() error {
	var ref versionRef
	if err := r.decode(&ref); err != nil {
		return err
	}
	j, err := r.version(ref)
	if err != nil || j == nil {
		return cmp.Or(err, errors.New("it has no version"))
	}
	return insertRow(r, TableJobs, j, jobID(j))
}

func (r *restorer) alloc() error {
	var row allocRow
	if err := r.decode(&row); err != nil {
		return err
	}
	j, err := r.version(row.Job)
	if err != nil || row.Alloc == nil {
		return cmp.Or(err, errors.New("it is empty"))
	}
	row.Alloc.Job = j
	shareNames(row.Alloc)
	if n := r.nodes[row.Alloc.NodeID]; n != "" {
		row.Alloc.NodeID = n
	}
	if err := insertRow(r, TableAllocs, row.Alloc, allocID(row.Alloc)); err != nil {
		return err
	}
	r.txn.rows.accountUsage(nil, row.Alloc)
	r.txn.rows.accountMark(nil, row.Alloc)
	r.txn.rows.accountAlloc(nil, row.Alloc)
	return nil
}

// version returns the job version that a row refers to, or nil for zero.
func (r *restorer) version(ref versionRef) (*cluster.Job, error) {
	switch {
	case ref == 0:
		return nil, nil
	case ref > versionRef(len(r.versions)):
		return nil, fmt.Errorf("it points to version %d of %d", ref, len(r.versions))
	}
	return r.versions[ref-1], nil
}

func (r *restorer) decode(row any) error {
	r.decoder.ResetBytes(r.row.Bytes())
	if err := r.decoder.Decode(row); err != nil {
		return err
	}
	if extra := r.row.Len() - r.decoder.NumBytesRead(); extra != 0 {
		return fmt.Errorf("%d bytes too many", extra)
	}
	if n, ok := row.(*cluster.Node); ok {
		return attributes.OfNode(r.row.Bytes(), n)
	}
	return nil
}

// whileReading adds the position to an error. A state that ends early is damaged.
func whileReading(part string, err error) error {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("reading %s: %w", part, err)
}

// summedReader computes the checksum of the bytes read.
type summedReader struct {
	in  *bufio.Reader
	sum hash.Hash64
}

func (r summedReader) Read(b []byte) (int, error) {
	n, err := r.in.Read(b)
	r.sum.Write(b[:n])
	return n, err
}

func (r summedReader) ReadByte() (byte, error) {
	b, err := r.in.ReadByte()
	if err == nil {
		r.sum.Write([]byte{b})
	}
	return b, err
}

// Rows are the rows of a state that is not of this package. The store keeps the rows: they must not be changed
// any more.
type Rows struct {
	// Index is the raft index of the state, above zero. Version is its cluster version. Zero is [cluster.MaxVersion].
	Index   uint64
	Version cluster.Version

	Nodes   []*cluster.Node
	Jobs    []*cluster.Job
	Allocs  []*cluster.Allocation
	Evals   []*cluster.Evaluation
	Volumes []*cluster.Volume
	Claims  []*cluster.VolumeClaim
	// Pause is the pause of all drains, or nil.
	Pause *cluster.DrainPause
}

// Load returns a new store with the rows, in any order. An allocation without a job gets the current version of
// its job. The error names a row that cannot be loaded.
func Load(rows Rows) (*Store, error) {
	if rows.Index == 0 {
		return nil, errors.New("loading rows: their index is zero")
	}
	s := New()
	t := s.Begin(rows.Index)
	defer t.Abort()
	t.RaiseClusterVersion(cmp.Or(rows.Version, cluster.MaxVersion))
	l := loader{&t.rows}
	loadAll(l, TableNodes, rows.Nodes)
	loadAll(l, TableJobs, rows.Jobs)
	loadAll(l, TableEvals, rows.Evals)
	loadAll(l, TableVolumes, rows.Volumes)
	loadAll(l, TableClaims, rows.Claims)
	if rows.Pause != nil {
		t.rows.insert(tablePause, &pauseRow{*rows.Pause})
	}
	for _, n := range rows.Nodes {
		if n.Draining() {
			t.rows.written.changes.toggle(n.ID, true)
		}
	}
	for _, a := range rows.Allocs {
		if err := l.alloc(a); err != nil {
			return nil, fmt.Errorf("loading allocation %s: %w", a.ID, err)
		}
	}
	t.Commit()
	return s, nil
}

// loader inserts rows with what is derived from them.
type loader struct{ rows *rowWrites }

func loadAll[T any](l loader, table string, rows []*T) {
	for _, row := range rows {
		l.rows.insert(table, row)
	}
}

func (l loader) alloc(a *cluster.Allocation) error {
	if a.Job == nil {
		j := l.rows.state().Job(a.JobKey())
		if j == nil {
			return ErrJobNotFound
		}
		a = a.Copy()
		a.Job = j
	}
	l.rows.insert(TableAllocs, a)
	l.rows.accountUsage(nil, a)
	l.rows.accountMark(nil, a)
	l.rows.accountAlloc(nil, a)
	return nil
}
