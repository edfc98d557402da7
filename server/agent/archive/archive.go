// Package archive writes and reads the file of "nodedrain operator snapshot": the state of a
// cluster, its metadata, and checksums. The servers and the command use it. Begin with [Write] and
// [Read].
//
// The file is a tar archive, compressed with gzip. Its members, in this order:
//
//	meta.json     [Meta]
//	state.bin     the state, as [statestore.Persist] writes it
//	SHA256SUMS    the checksums of the two members, as sha256sum writes them
//
// The state contains the secrets of nodes: protect the file like the data directory of a server.
package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Version is the version of the file's form that this build writes and reads.
const Version = 1

// ErrInvalid is wrapped by errors that refuse a file: it is damaged, cut, of another program, or of
// another build. The text names which.
var ErrInvalid = errors.New("not a usable snapshot")

// Meta is what is known about a saved state.
type Meta struct {
	// Format is always the same text, which the files of other programs do not have.
	Format string
	// Version is the version of the file's form: see [Version].
	Version int
	// ClusterVersion is the cluster version of the state.
	ClusterVersion cluster.Version
	// Cluster is the id of the cluster, or empty: its server keeps no data directory.
	Cluster string
	// Server is the server that has saved the state, Index the raft index of the state, and Time
	// when it was saved.
	Server string
	Index  uint64
	Time   time.Time
}

const format = "nodedrain snapshot"

// The members of the file.
const (
	metaMember  = "meta.json"
	stateMember = "state.bin"
	sumsMember  = "SHA256SUMS"
)

// maxText bounds the members that are texts, in bytes.
const maxText = 64 << 10

// Write writes a file. It sets Format and Version of the metadata. It calls persist twice, which
// writes the same bytes each time: the length of the state stands before it.
func Write(w io.Writer, m Meta, persist func(io.Writer) error) error {
	m.Format, m.Version = format, Version
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the snapshot: %w", err)
	}
	state := &counted{sum: sha256.New()}
	if err := persist(state); err != nil {
		return fmt.Errorf("writing the snapshot: %w", err)
	}
	compressed := gzip.NewWriter(w)
	out := tar.NewWriter(compressed)
	add := func(name string, size int64, content func(io.Writer) error) {
		if err == nil {
			err = out.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: size, ModTime: m.Time})
		}
		if err == nil {
			err = content(out)
		}
	}
	addText := func(name string, text []byte) {
		add(name, int64(len(text)), func(w io.Writer) error {
			_, err := w.Write(text)
			return err
		})
	}
	addText(metaMember, text)
	add(stateMember, state.size, persist)
	metaSum := sha256.Sum256(text)
	addText(sumsMember, sums(metaSum[:], state.sum.Sum(nil)))
	if err = errors.Join(err, out.Close(), compressed.Close()); err != nil {
		return fmt.Errorf("writing the snapshot: %w", err)
	}
	return nil
}

// sums is the content of the last member.
func sums(meta, state []byte) []byte {
	return fmt.Appendf(nil, "%x  %s\n%x  %s\n", meta, metaMember, state, stateMember)
}

// counted counts bytes and computes their checksum.
type counted struct {
	sum  hash.Hash
	size int64
}

// Write counts the bytes.
func (c *counted) Write(b []byte) (int, error) {
	c.size += int64(len(b))
	return c.sum.Write(b)
}

// Read reads a whole file, and gives the state to use, which need not read all of it. Use must not act
// on the state: Read compares the checksums afterwards. An error of use that wraps
// [cluster.ErrVersion] ends the reading and is returned wrapped. Other errors wrap [ErrInvalid], except
// those of r.
func Read(r io.Reader, use func(Meta, io.Reader) error) (Meta, error) {
	in := &source{Reader: r}
	m, err := read(in, use)
	switch {
	case err == nil:
		return m, nil
	case in.err != nil:
		return m, fmt.Errorf("reading the snapshot: %w", in.err)
	case errors.Is(err, cluster.ErrVersion):
		return m, fmt.Errorf("refusing the snapshot: %w", err)
	}
	return m, fmt.Errorf("%w: %w", ErrInvalid, err)
}

// source keeps the error of a reader: it is not the file's.
type source struct {
	io.Reader
	err error
}

// Read reads.
func (s *source) Read(b []byte) (int, error) {
	n, err := s.Reader.Read(b)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

func read(r io.Reader, use func(Meta, io.Reader) error) (m Meta, err error) {
	compressed, err := gzip.NewReader(r)
	if err != nil {
		return m, fmt.Errorf("it is empty or of another program: %w", err)
	}
	in := tar.NewReader(compressed)
	text, err := member(in, metaMember)
	if err != nil {
		return m, err
	}
	if m, err = parse(text); err != nil {
		return m, err
	}
	head, err := in.Next()
	if err != nil || head.Name != stateMember {
		return m, missing(stateMember, err)
	}
	sum := sha256.New()
	state := io.TeeReader(in, sum)
	used := use(m, state)
	if errors.Is(used, cluster.ErrVersion) {
		return m, used
	}
	if _, err := io.Copy(io.Discard, state); err != nil {
		return m, damaged(err)
	}
	found, err := member(in, sumsMember)
	if err != nil {
		return m, err
	}
	metaSum := sha256.Sum256(text)
	if !bytes.Equal(found, sums(metaSum[:], sum.Sum(nil))) {
		return m, errors.New("it is damaged: a checksum (SHA-256) does not match")
	}
	if err := end(in, compressed); err != nil {
		return m, err
	}
	return m, used
}

// parse reads the metadata, and refuses that of another program or of a newer build.
func parse(text []byte) (m Meta, err error) {
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("its %s cannot be read: %w", metaMember, err)
	}
	switch {
	case m.Format != format:
		return m, fmt.Errorf("it is of another program: the format in its %s is %q instead of %q", metaMember, m.Format, format)
	case m.Version != Version:
		return m, fmt.Errorf("it has snapshot version %d, and this build reads version %d: use the build that wrote it, or a newer one", m.Version, Version)
	}
	return m, nil
}

// member reads the next member, a text.
func member(in *tar.Reader, name string) ([]byte, error) {
	head, err := in.Next()
	if err != nil || head.Name != name {
		return nil, missing(name, err)
	}
	text, err := io.ReadAll(io.LimitReader(in, maxText))
	if err != nil {
		return nil, damaged(err)
	}
	return text, nil
}

// missing is the error of a member that is not where it should be.
func missing(name string, err error) error {
	switch {
	case err == io.EOF:
		return fmt.Errorf("it is incomplete: %s is missing", name)
	case err != nil:
		return fmt.Errorf("reading %s: %w", name, damaged(err))
	}
	return fmt.Errorf("it is of another program: its next member is not %s", name)
}

// end checks that nothing follows, and the checksum of gzip.
func end(in *tar.Reader, compressed io.Reader) error {
	switch head, err := in.Next(); {
	case err == nil:
		return fmt.Errorf("it has the unknown member %q", head.Name)
	case err != io.EOF:
		return damaged(err)
	}
	if _, err := io.Copy(io.Discard, compressed); err != nil {
		return damaged(err)
	}
	return nil
}

func damaged(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("it is incomplete: %w", err)
	}
	return fmt.Errorf("it is damaged: %w", err)
}
