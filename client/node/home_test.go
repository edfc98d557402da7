package node

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/guard"
)

func TestHome_identity(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	h, err := openHome(path, t.TempDir(), false, slog.New(slog.DiscardHandler))
	must.NoError(t, err)
	first := h.identity
	must.NotEq(t, "", string(first.ID))
	must.Greater(t, 40, len(first.Secret))
	for name, expected := range map[string]os.FileMode{"": 0o711, pluginsDir: 0o700} {
		info, err := os.Stat(filepath.Join(path, name))
		must.NoError(t, err)
		must.Eq(t, expected, info.Mode().Perm(), must.Sprint(name))
	}
	info, err := os.Stat(filepath.Join(path, identityFile))
	must.NoError(t, err)
	must.Eq(t, 0o600, info.Mode().Perm())

	_, err = openHome(path, t.TempDir(), false, slog.New(slog.DiscardHandler))
	must.ErrorContains(t, err, path)
	must.ErrorContains(t, err, "is in use by the client with pid ")
	must.NoError(t, h.close())

	h, err = openHome(path, t.TempDir(), false, slog.New(slog.DiscardHandler))
	must.NoError(t, err)
	must.Eq(t, first, h.identity, must.Sprint("the node is the same after a restart"))
	must.NoError(t, h.close())
}

// The client refuses a data directory that other users can change. Of its own directory it removes
// the right to list it.
func TestHome_otherUsers(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	path := filepath.Join(base, "data")
	h, err := openHome(path, t.TempDir(), false, slog.New(slog.DiscardHandler))
	must.NoError(t, err)
	must.NoError(t, h.close())
	must.NoError(t, os.Chmod(path, 0o755))
	var log bytes.Buffer
	h, err = openHome(path, t.TempDir(), false, slog.New(slog.NewTextHandler(&log, nil)))
	must.NoError(t, err)
	must.NoError(t, h.close())
	must.StrContains(t, log.String(), "level=WARN msg=\"other users could list the data directory: its mode is now 0711\" path="+path+" mode=0755")
	info, err := os.Stat(path)
	must.NoError(t, err)
	must.Eq(t, 0o711, info.Mode().Perm())

	must.NoError(t, os.Chmod(path, 0o770))
	_, err = openHome(path, t.TempDir(), false, slog.New(slog.DiscardHandler))
	must.ErrorContains(t, err, "other users may write to "+path)
	must.NoError(t, os.Mkdir(filepath.Join(base, "var"), 0o755))
	must.NoError(t, os.Mkdir(filepath.Join(base, "var", "log"), 0o755))
	_, err = openHome(filepath.Join(base, "var"), t.TempDir(), false, slog.New(slog.DiscardHandler))
	must.ErrorContains(t, err, "files of other programs")
}

// A damaged file never gives the client the identity of a new node.
func TestHome_damagedIdentity(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{"empty": "", "cut": `{"ID":"a","Sec`, "without a secret": `{"ID":"a"}`, "without an id": `{"Secret":"a"}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := t.TempDir()
			must.NoError(t, os.WriteFile(filepath.Join(path, identityFile), []byte(content), 0o600))
			_, err := openHome(path, t.TempDir(), false, slog.New(slog.DiscardHandler))
			must.ErrorContains(t, err, filepath.Join(path, identityFile)+" is damaged")
			h, err := openHome(path, t.TempDir(), true, slog.New(slog.DiscardHandler))
			must.NoError(t, err, must.Sprint("-destroy removes what is left"))
			must.NoError(t, h.close())
		})
	}
}

// Bug: a client whose identity was deleted became another node, beside its own tasks, without a word.
func TestHome_missingIdentity(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{recordsDir, allocsDir} {
		path := filepath.Join(t.TempDir(), "data")
		for range 2 {
			h, err := openHome(path, t.TempDir(), false, slog.New(slog.DiscardHandler))
			must.NoError(t, err, must.Sprint("nothing is left in it"))
			must.NoError(t, h.close())
			must.NoError(t, os.MkdirAll(filepath.Join(path, folder), 0o700))
			must.NoError(t, os.Remove(filepath.Join(path, identityFile)))
		}
		must.NoError(t, os.WriteFile(filepath.Join(path, folder, "alloc"), nil, 0o600))
		_, err := openHome(path, t.TempDir(), false, slog.New(slog.DiscardHandler))
		must.ErrorContains(t, err, filepath.Join(path, identityFile)+" is missing, and "+filepath.Join(path, folder)+" has the records or folders of allocations")
		must.ErrorContains(t, err, `"nodedrain client -config FILE -destroy"`)
		must.FileNotExists(t, filepath.Join(path, identityFile))
		h, err := openHome(path, t.TempDir(), true, slog.New(slog.DiscardHandler))
		must.NoError(t, err, must.Sprint("-destroy removes what is left"))
		must.NotEq(t, "", string(h.identity.ID))
		must.FileNotExists(t, filepath.Join(path, identityFile))
		must.NoError(t, h.close())
	}
}

// The time of the last contact is valid only in the same boot of the machine.
func TestHome_contact(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	h, err := openHome(path, t.TempDir(), false, slog.New(slog.DiscardHandler))
	must.NoError(t, err)
	must.Eq(t, guard.Contact{}, h.contact("b1"))
	must.False(t, h.guarded())
	must.NoError(t, h.noteContact(func(c *lastContact) { c.BootID, c.Sent, c.TTL = "b1", time.Second, time.Minute }))
	must.NoError(t, h.noteContact(func(c *lastContact) { c.Guarded = true }))
	must.NoError(t, h.close())
	h, err = openHome(path, t.TempDir(), false, slog.New(slog.DiscardHandler))
	must.NoError(t, err)
	must.Eq(t, guard.Contact{Sent: time.Second, TTL: time.Minute}, h.contact("b1"))
	must.Eq(t, guard.Contact{}, h.contact("b2"))
	must.True(t, h.guarded())
	must.NoError(t, h.close())
	must.NoError(t, os.WriteFile(filepath.Join(path, contactFile), []byte("x"), 0o600))
	h, err = openHome(path, t.TempDir(), false, slog.New(slog.DiscardHandler))
	must.NoError(t, err)
	must.Eq(t, guard.Contact{}, h.contact("b1"))
	must.False(t, h.guarded())
	must.NoError(t, h.close())
}
