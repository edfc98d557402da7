package statestore

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash"
	"hash/crc64"
	"io"
	"maps"
	"slices"

	"github.com/hashicorp/go-msgpack/v2/codec"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/journal"
)

// A persisted state is the magic, the cluster version, and a frame for each row: its kind, its
// length, and that many bytes of MessagePack. Frames are ordered by kind, and within a kind by id.
// The last frame, of kindEnd, holds the checksum of all bytes before it. Derived rows (usage,
// health, changing allocations, marks) and the number of records are left out: Restore computes
// them.
//
// Equal states have equal bytes.
const (
	magic = "nodedrain state\n"
	// maxFrame bounds one row, in bytes. A longer row means a damaged snapshot.
	maxFrame = 64 << 20
)

type kind byte

const (
	kindCounter kind = iota + 1
	kindVersion      // of a job
	kindNode
	kindRecord
	kindJob
	kindAlloc
	kindEval
	kindEnd
	// kindVolume and kindClaim exist from cluster version 7 on.
	kindVolume
	kindClaim
	// kindJournal and the kinds after it exist from cluster version 9 on.
	kindJournal
	kindJournalGroup
	kindTimes
	kindPause
)

// versionRef is the number of a job version, counted from one; zero is none.
type versionRef uint64

// allocRow is an allocation whose job version is in another frame.
type allocRow struct {
	Job   versionRef
	Alloc *cluster.Allocation // never nil; its Job is nil
}

// handle is the codec's configuration: canonical, with times in nanoseconds, and with an
// error for an unknown field.
func handle() *codec.MsgpackHandle {
	h := &codec.MsgpackHandle{WriteExt: true}
	h.Canonical = true
	h.ErrorIfNoField = true
	h.ErrorIfNoArrayExpand = true
	return h
}

func checksum() hash.Hash64 { return crc64.New(crc64.MakeTable(crc64.ECMA)) }

// Persist writes the state for [Restore]. Later commits do not affect it.
func Persist(w io.Writer, s *Snapshot) error {
	buffered := bufio.NewWriter(w)
	p := &persister{out: buffered, sum: checksum()}
	p.encoder = codec.NewEncoderBytes(&p.row, handle())
	p.bytes([]byte(magic))
	p.bytes(binary.AppendUvarint(nil, uint64(s.ClusterVersion())))
	p.rows(s)
	p.end()
	if p.err == nil {
		p.err = buffered.Flush()
	}
	if p.err != nil {
		return fmt.Errorf("persisting the state: %w", p.err)
	}
	return nil
}

// persister writes frames until the first error.
type persister struct {
	out     io.Writer
	sum     hash.Hash64
	encoder *codec.Encoder
	row     []byte
	err     error
}

func (p *persister) rows(s *Snapshot) {
	for _, name := range persistedCounters() {
		if value := *s.counters.named(name); value > 0 {
			p.frame(kindCounter, counter{name, value})
		}
	}
	versions, err := jobVersionsOf(s, p.encodeJob)
	if err != nil {
		p.err = err
	}
	for _, v := range versions.texts {
		p.raw(kindVersion, []byte(v))
	}
	for n := range s.Nodes() {
		p.frame(kindNode, n)
	}
	for d := range scan[cluster.Drain](s.tables, TableDrains, indexID, nil) {
		p.frame(kindRecord, d)
	}
	for j := range s.Jobs() {
		p.frame(kindJob, versionRef(versions.number[j]))
	}
	for a := range s.Allocs() {
		c := *a
		c.Job = nil
		p.frame(kindAlloc, allocRow{versionRef(versions.number[a.Job]), &c})
	}
	for e := range s.Evals() {
		p.frame(kindEval, e)
	}
	for v := range s.Volumes() {
		p.frame(kindVolume, v)
	}
	for c := range s.WorkView().Claims() {
		p.frame(kindClaim, c)
	}
	for j := range scan[journal.Journal](s.tables, tableJournals, indexID, nil) {
		p.frame(kindJournal, j)
	}
	for r := range scan[journal.Running](s.tables, tableJournalGroups, indexID, nil) {
		p.frame(kindJournalGroup, r)
	}
	for r := range scan[groupTimes](s.tables, tableTimes, indexID, nil) {
		p.frame(kindTimes, r)
	}
	if all := s.DrainView().DrainPause(); all != nil {
		p.frame(kindPause, pauseRow{*all})
	}
}

// end writes the last frame, which holds the checksum.
func (p *persister) end() {
	p.bytes([]byte{byte(kindEnd)})
	p.bytes(binary.BigEndian.AppendUint64(nil, p.sum.Sum64()))
}

func (p *persister) encodeJob(j *cluster.Job) (string, error) {
	if p.err == nil {
		p.err = p.encode(j)
	}
	return string(p.row), p.err
}

func (p *persister) encode(row any) error {
	p.row = p.row[:0]
	p.encoder.ResetBytes(&p.row)
	return p.encoder.Encode(row)
}

func (p *persister) frame(k kind, row any) {
	if p.err != nil {
		return
	}
	if p.err = p.encode(row); p.err == nil {
		p.raw(k, p.row)
	}
}

func (p *persister) raw(k kind, row []byte) {
	if p.err == nil && len(row) > maxFrame {
		p.err = fmt.Errorf("a row of %d bytes, more than %d", len(row), maxFrame)
	}
	p.bytes(binary.AppendUvarint([]byte{byte(k)}, uint64(len(row))))
	p.bytes(row)
}

func (p *persister) bytes(b []byte) {
	if p.err != nil {
		return
	}
	p.sum.Write(b) // a hash never returns an error
	_, p.err = p.out.Write(b)
}

// jobVersions are the distinct versions of jobs in a state: those of the jobs table and
// those of allocations. Two equal versions count once even if they are different objects, so
// that equal states have equal lists.
type jobVersions struct {
	// texts are their encodings, sorted.
	texts []string
	// number is the position of a version in texts, counted from one.
	number map[*cluster.Job]int
}

// jobVersionsOf lists the versions of jobs, encoded by encode.
func jobVersionsOf(s *Snapshot, encode func(*cluster.Job) (string, error)) (jobVersions, error) {
	text := make(map[*cluster.Job]string)
	var err error
	note := func(j *cluster.Job) bool {
		if _, encoded := text[j]; !encoded && j != nil {
			text[j], err = encode(j)
		}
		return err == nil
	}
	for j := range s.Jobs() {
		if !note(j) {
			return jobVersions{}, err
		}
	}
	for a := range s.Allocs() {
		if !note(a.Job) {
			return jobVersions{}, err
		}
	}
	v := jobVersions{number: make(map[*cluster.Job]int, len(text))}
	v.texts = slices.Compact(slices.Sorted(maps.Values(text)))
	//lint:order each key has a value of its own
	for j, t := range text {
		at, _ := slices.BinarySearch(v.texts, t)
		v.number[j] = at + 1
	}
	return v, nil
}
