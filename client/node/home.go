package node

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f9cf0b39/nodedrain/client/guard"
	"github.com/seed-f9cf0b39/nodedrain/client/internal/bootclock"
	"github.com/seed-f9cf0b39/nodedrain/client/record"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/private"
)

// The content of the data directory, besides the folders of other packages.
const (
	identityFile = "node.json"
	contactFile  = "contact.json"
	allocsDir    = "allocs"
	recordsDir   = "records"
	pluginsDir   = "plugins"
)

// nodeLocksDir is the folder of the locks of nodes in the folder of this user's clients.
const nodeLocksDir = "nodes"

// home is the data directory of a client, locked by this process.
type home struct {
	path string
	lock *record.Lock
	// node is the lock of the node on this machine, or nil.
	node     *record.Lock
	identity identity

	mu   sync.Mutex // held while contactFile is written
	last lastContact
}

// identity identifies the node to the servers. It is created once.
type identity struct {
	ID cluster.NodeID
	// Secret proves to the servers that a request is from the node.
	Secret string
}

// lastContact is the result of the last contact with the servers.
type lastContact struct {
	// BootID and Sent are the boot and the time in which the client sent the last heartbeat that was
	// answered.
	BootID string
	Sent   time.Duration
	// TTL is that of the answer.
	TTL time.Duration `json:",omitempty"`
	// ClusterVersion is the cluster version of the last answer, or zero.
	ClusterVersion cluster.Version
	// Guarded: the servers accept no jobs without a token.
	Guarded bool
}

// homeMode is the mode of the data directory: the users of tasks need access to the folders of
// allocations below it, but must not list it.
const homeMode = 0o711

// openHome opens and locks a data directory, and creates it if it does not exist. It returns an
// error if other users can change the directory, or if a client with a copy of it runs on this machine.
// locks is the folder of the locks of nodes. alone means that the client only removes what is left.
func openHome(path, locks string, alone bool, logger *slog.Logger) (*home, error) {
	before, err := private.Limit(path, homeMode, identityFile, recordsDir, record.LockFile)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if before != 0 {
		logger.Warn("other users could list the data directory: its mode is now 0711", "path", path, "mode", fmt.Sprintf("%04o", before))
	}
	lock, err := record.TakeLock(path)
	if err != nil {
		return nil, err
	}
	h := &home{path: path, lock: lock}
	if err := h.open(alone); err != nil {
		return nil, fmt.Errorf("data directory %s: %w", path, errors.Join(err, h.close()))
	}
	// The records name processes of this machine. So nothing may be used before the client has the lock.
	switch h.node, err = record.TakeNodeLock(locks, h.identity.ID, path); {
	case errors.Is(err, record.ErrInUse):
		return nil, errors.Join(err, h.close())
	case err != nil:
		logger.Warn("the client cannot detect a client with a copy of its data directory on this machine", "error", err)
	}
	return h, nil
}

// machineFolder is the folder that all clients of this user have in common on this machine.
func machineFolder() string {
	if os.Geteuid() == 0 {
		return "/run/nodedrain"
	}
	return filepath.Join(os.TempDir(), "nodedrain-"+strconv.Itoa(os.Geteuid()))
}

func (h *home) open(alone bool) error {
	if err := os.Chmod(h.path, homeMode); err != nil {
		return err
	}
	if err := os.MkdirAll(h.file(pluginsDir), 0o700); err != nil {
		return err
	}
	if err := h.readIdentity(alone); err != nil {
		return err
	}
	// A lost or damaged file means an unknown contact.
	if content, err := os.ReadFile(h.file(contactFile)); err == nil && json.Unmarshal(content, &h.last) != nil {
		h.last = lastContact{}
	}
	return nil
}

func (h *home) file(name string) string { return filepath.Join(h.path, name) }

// close releases the locks.
func (h *home) close() error {
	var errs []error
	for _, lock := range []*record.Lock{h.node, h.lock} {
		if lock != nil {
			errs = append(errs, lock.Close())
		}
	}
	return errors.Join(errs...)
}

// readIdentity reads the identity, or creates it in an empty directory. With another identity the client would be
// another node: the servers would give up what runs here. So it is an error if the identity is lost, except for a
// client that only removes what is left.
func (h *home) readIdentity(alone bool) error {
	path, lost := h.file(identityFile), ""
	content, err := os.ReadFile(path)
	left, leftErr := h.left()
	switch missing := errors.Is(err, fs.ErrNotExist); {
	case err != nil && !missing:
		return err
	case leftErr != nil:
		return leftErr
	case missing && left == "":
		h.identity = newIdentity()
		content, err := json.Marshal(h.identity)
		return errors.Join(err, replaceFile(path, content))
	case missing:
		lost = fmt.Sprintf("%s is missing, and %s has the records or folders of allocations", path, left)
	case json.Unmarshal(content, &h.identity) != nil || cluster.CheckID(h.identity.ID) != nil || h.identity.Secret == "":
		lost = path + " is damaged"
	}
	switch {
	case lost == "":
		return os.Chmod(path, 0o600)
	case alone:
		h.identity = newIdentity()
		return nil
	}
	return fmt.Errorf("%s: its content identifies this node to the servers; restore the file from a backup, "+
		`or end the tasks and remove the directory with "nodedrain client -config FILE -destroy": the machine is then a new node`, lost)
}

func newIdentity() identity {
	return identity{ID: cluster.NodeID(uuid.NewString()), Secret: rand.Text() + rand.Text()}
}

// left returns a folder with what an earlier client has left of its allocations, or empty.
func (h *home) left() (folder string, err error) {
	for _, name := range []string{recordsDir, allocsDir} {
		names, err := os.ReadDir(h.file(name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return "", err
		case len(names) > 0:
			return h.file(name), nil
		}
	}
	return "", nil
}

// contact returns the last contact in this boot, or zero. It is not in the future, although the
// boot clock may have gone back.
func (h *home) contact(bootID string) guard.Contact {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last.BootID != bootID {
		return guard.Contact{}
	}
	return guard.Contact{Sent: min(h.last.Sent, bootclock.Now()), TTL: h.last.TTL}
}

// noteContact changes lastContact and writes the file. The file need not survive a power failure,
// because it is not valid after a boot.
func (h *home) noteContact(change func(*lastContact)) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(&h.last)
	content, err := json.Marshal(h.last)
	if err != nil {
		return err
	}
	next := h.file(contactFile) + ".new"
	if err := os.WriteFile(next, content, 0o600); err != nil {
		return err
	}
	return os.Rename(next, h.file(contactFile))
}

// clusterVersion returns the cluster version of the last answer of the servers, or zero.
func (h *home) clusterVersion() cluster.Version {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last.ClusterVersion
}

// guarded reports whether the servers accepted no jobs without a token when they last answered.
func (h *home) guarded() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last.Guarded
}

// replaceFile writes a file that is complete or absent, also after a power failure.
func replaceFile(path string, content []byte) error {
	next := path + ".new"
	f, err := os.OpenFile(next, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(next, path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
