package private_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/private"
)

// stranger is the number of another user.
const stranger = 12345

// tree is a folder for a test. The methods stop the test after an error.
type tree struct {
	*testing.T
	root string
}

func newTree(t *testing.T) tree { return tree{t, t.TempDir()} }

func (t tree) path(name string) string { return filepath.Join(t.root, name) }

func (t tree) folder(name string, mode fs.FileMode) {
	t.Helper()
	must.NoError(t, os.MkdirAll(t.path(name), 0o700))
	must.NoError(t, os.Chmod(t.path(name), mode))
}

func (t tree) file(name string) {
	t.Helper()
	must.NoError(t, os.WriteFile(t.path(name), nil, 0o600))
}

func (t tree) link(name, target string) {
	t.Helper()
	must.NoError(t, os.Symlink(target, t.path(name)))
}

func (t tree) owner(name string, user, group int) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("!!! NOT RUN: only root can give a file away")
	}
	must.NoError(t, os.Lchown(t.path(name), user, group))
}

func (t tree) mode(name string) fs.FileMode {
	t.Helper()
	info, err := os.Stat(t.path(name))
	must.NoError(t, err)
	return info.Mode().Perm()
}

// A folder is refused if another user can change or replace it.
func TestMake(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(tree)
		want    string // in the error, or empty
	}{
		"new":                     {func(tree) {}, ""},
		"own":                     {func(t tree) { t.folder("a/b", 0o700) }, ""},
		"readable by others":      {func(t tree) { t.folder("a/b", 0o755) }, ""},
		"of another user":         {func(t tree) { t.folder("a/b", 0o700); t.owner("a/b", stranger, 0) }, "belongs to another user (12345)"},
		"writable by others":      {func(t tree) { t.folder("a/b", 0o702) }, "other users may write to"},
		"writable by a group":     {func(t tree) { t.folder("a/b", 0o770) }, "other users may write to"},
		"with the sticky bit":     {func(t tree) { t.folder("a/b", 0o777|fs.ModeSticky) }, "other users may write to"},
		"below another user":      {func(t tree) { t.folder("a/b", 0o700); t.owner("a", stranger, 0) }, "a belongs to another user (12345), who can replace"},
		"new, below another user": {func(t tree) { t.folder("a", 0o700); t.owner("a", stranger, 0) }, "a belongs to another user (12345), who can replace"},
		"below a folder of all":   {func(t tree) { t.folder("a/b", 0o700); t.folder("a", 0o777) }, "chmod go-w"},
		"below a folder of a group": {func(t tree) { t.folder("a/b", 0o700); t.owner("a", 0, stranger); t.folder("a", 0o775) },
			"chmod go-w"},
		"below a folder of the owner's group": {func(t tree) { t.folder("a/b", 0o700); t.owner("a", 0, 0); t.folder("a", 0o775) }, ""},
		"below a folder as /tmp":              {func(t tree) { t.folder("a/b", 0o700); t.folder("a", 0o777|fs.ModeSticky) }, ""},
		"a file":                              {func(t tree) { t.folder("a", 0o700); t.file("a/b") }, "is not a folder"},
		"below a file":                        {func(t tree) { t.file("a") }, "not a directory"},
		"a link":                              {func(t tree) { t.folder("real", 0o700); t.folder("a", 0o700); t.link("a/b", "../real") }, ""},
		"below a link":                        {func(t tree) { t.folder("real", 0o700); t.link("a", t.path("./real")) }, ""},
		"a link of another user": {func(t tree) {
			t.folder("real", 0o700)
			t.folder("a", 0o777|fs.ModeSticky)
			t.link("a/b", "../real")
			t.owner("a/b", stranger, 0)
		},
			"b belongs to another user (12345), who can replace"},
		"a link to a folder of all": {func(t tree) { t.folder("real", 0o777); t.link("a", "real") }, "other users may write to"},
		"a link below another user": {func(t tree) { t.folder("x/real", 0o700); t.owner("x", stranger, 0); t.link("a", "x/real") },
			"x belongs to another user (12345), who can replace"},
		"a link to nothing": {func(t tree) { t.link("a", "nothing") }, "no such file"},
		"a circle":          {func(t tree) { t.link("a", "a") }, "too many levels of symbolic links"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree := newTree(t)
			c.prepare(tree)
			mode, err := private.Make(tree.path("a/b"))
			if c.want != "" {
				must.ErrorContains(t, err, c.want)
				return
			}
			must.NoError(t, err)
			must.True(t, mode.IsDir())
			must.Eq(t, tree.mode("a/b"), mode.Perm())
			if name == "new" {
				must.Eq(t, []fs.FileMode{0o711, 0o700}, []fs.FileMode{tree.mode("a"), tree.mode("a/b")})
			}
		})
	}
}

// Nothing is made below a folder that is refused, and no target of a link is made.
func TestMake_leavesNothing(t *testing.T) {
	t.Parallel()
	tree := newTree(t)
	tree.folder("open", 0o777)
	_, err := private.Make(tree.path("open/new"))
	must.Error(t, err)
	_, err = os.Lstat(tree.path("open/new"))
	must.ErrorIs(t, err, fs.ErrNotExist)
	tree.link("link", "disk/data")
	_, err = private.Make(tree.path("link"))
	must.ErrorIs(t, err, fs.ErrNotExist)
	_, err = os.Lstat(tree.path("disk"))
	must.ErrorIs(t, err, fs.ErrNotExist)
}

// A relative path begins in the working folder, whose way is checked too.
func TestMake_relative(t *testing.T) {
	tree := newTree(t)
	tree.folder("here", 0o700)
	t.Chdir(tree.path("here"))
	_, err := private.Make("data")
	must.NoError(t, err)
	must.Eq(t, 0o700, tree.mode("here/data"))
	tree.folder(".", 0o777)
	_, err = private.Make("data")
	must.ErrorContains(t, err, "other users may write to "+tree.root)
}

// Limit closes a folder of this program, and leaves a folder that other programs may need.
func TestLimit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mode    fs.FileMode
		content []string
		want    fs.FileMode
		refused string
	}{
		"closed":                  {0o700, []string{"else"}, 0o700, ""},
		"narrower":                {0o500, []string{"else"}, 0o500, ""},
		"empty":                   {0o755, nil, 0o700, ""},
		"an empty file system":    {0o755, []string{"lost+found"}, 0o700, ""},
		"of this program":         {0o755, []string{"else", "log"}, 0o700, ""},
		"of other programs":       {0o755, []string{"else"}, 0o755, `and files of other programs: name another folder, or run "chmod 0700 `},
		"writable by others":      {0o757, []string{"log"}, 0o757, "other users may write to"},
		"writable by all, empty":  {0o777, nil, 0o777, "other users may write to"},
		"executable by the group": {0o710, []string{"log"}, 0o700, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree := newTree(t)
			tree.folder("a", 0o700)
			for _, file := range c.content {
				tree.file("a/" + file)
			}
			tree.folder("a", c.mode)
			before, err := private.Limit(tree.path("a"), 0o700, "log")
			must.Eq(t, c.want, tree.mode("a"))
			switch {
			case c.refused != "":
				must.ErrorContains(t, err, c.refused)
			case c.want != c.mode:
				must.NoError(t, err)
				must.Eq(t, c.mode, before)
			default:
				must.NoError(t, err)
				must.Eq(t, 0, before)
			}
		})
	}
}

// Limit keeps the bits beside the rights.
func TestLimit_otherBits(t *testing.T) {
	t.Parallel()
	tree := newTree(t)
	tree.folder("a", 0o755|fs.ModeSetgid)
	_, err := private.Limit(tree.path("a"), 0o711)
	must.NoError(t, err)
	info, err := os.Stat(tree.path("a"))
	must.NoError(t, err)
	must.Eq(t, fs.ModeDir|fs.ModeSetgid|0o711, info.Mode())
}

// The way to a file is checked, and the file itself is not.
func TestCheckAbove(t *testing.T) {
	t.Parallel()
	tree := newTree(t)
	tree.folder("a", 0o755)
	tree.file("a/file")
	must.NoError(t, os.Chmod(tree.path("a/file"), 0o777))
	must.NoError(t, private.CheckAbove(tree.path("a/file")))
	err := private.CheckAbove(tree.path("a/none"))
	must.True(t, errors.Is(err, syscall.ENOENT))
	tree.folder("a", 0o777)
	must.ErrorContains(t, private.CheckAbove(tree.path("a/file")), "other users may write to "+tree.path("a")+" and so replace "+tree.path("a/file"))
}
