package node

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/shoenig/test/must"
)

func TestHome_identity(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	h, err := openHome(path)
	must.NoError(t, err)
	first := h.identity
	must.NotEq(t, "", string(first.ID))
	must.Greater(t, 40, len(first.Secret))
	for name, want := range map[string]os.FileMode{"": 0o711, pluginsDir: 0o700} {
		info, err := os.Stat(filepath.Join(path, name))
		must.NoError(t, err)
		must.Eq(t, want, info.Mode().Perm(), must.Sprint(name))
	}
	info, err := os.Stat(filepath.Join(path, identityFile))
	must.NoError(t, err)
	must.Eq(t, 0o600, info.Mode().Perm())

	_, err = openHome(path)
	must.ErrorContains(t, err, path)
	must.ErrorContains(t, err, "is in use by the client with pid ")
	must.NoError(t, h.close())

	h, err = openHome(path)
	must.NoError(t, err)
	must.Eq(t, first, h.identity, must.Sprint("the node is the same after a restart"))
	must.NoError(t, h.close())
}

// A damaged file never gives the client the identity of a new node.
func TestHome_damagedIdentity(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{"empty": "", "cut": `{"ID":"a","Sec`, "without a secret": `{"ID":"a"}`, "without an id": `{"Secret":"a"}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := t.TempDir()
			must.NoError(t, os.WriteFile(filepath.Join(path, identityFile), []byte(content), 0o600))
			_, err := openHome(path)
			must.ErrorContains(t, err, filepath.Join(path, identityFile)+" is damaged")
		})
	}
}

// The time of the last contact is valid only in the same boot of the machine.
func TestHome_contact(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	h, err := openHome(path)
	must.NoError(t, err)
	must.Eq(t, 0, h.contact("b1"))
	must.False(t, h.guarded())
	must.NoError(t, h.noteContact(func(c *lastContact) { c.BootID, c.Sent = "b1", time.Minute }))
	must.NoError(t, h.noteContact(func(c *lastContact) { c.Guarded = true }))
	must.NoError(t, h.close())
	h, err = openHome(path)
	must.NoError(t, err)
	must.Eq(t, time.Minute, h.contact("b1"))
	must.Eq(t, 0, h.contact("b2"))
	must.True(t, h.guarded())
	must.NoError(t, h.close())
	must.NoError(t, os.WriteFile(filepath.Join(path, contactFile), []byte("x"), 0o600))
	h, err = openHome(path)
	must.NoError(t, err)
	must.Eq(t, 0, h.contact("b1"))
	must.False(t, h.guarded())
	must.NoError(t, h.close())
}
