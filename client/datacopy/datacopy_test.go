package datacopy_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math/rand"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/shoenig/test/must"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/client/datacopy"
	"github.com/seed-f9cf0b39/nodedrain/internal/tmpfs"
)

// root opens a new folder. It is in memory where the machine has such a folder: each copy syncs its file system.
func root(t testing.TB) (*os.Root, string) {
	t.Helper()
	r := tmpfs.Folder(t)
	return r, r.Name()
}

// receiver returns a receiver of alloc/data into a new folder, and the path of alloc/data.
func receiver(t testing.TB, change func(*datacopy.Options)) (*datacopy.Receiver, string) {
	t.Helper()
	into, path := root(t)
	o := datacopy.Options{Into: into, Folders: []string{"alloc/data"}, MaxBytes: 1 << 30, Reserve: 1}
	if change != nil {
		change(&o)
	}
	r, err := datacopy.NewReceiver(o)
	must.NoError(t, err)
	t.Cleanup(func() { _ = r.Close() })
	return r, filepath.Join(path, "alloc/data")
}

// send returns a stream of a folder as alloc/data.
func send(t testing.TB, from *os.Root, at datacopy.Position) []byte {
	t.Helper()
	var stream bytes.Buffer
	must.NoError(t, datacopy.Send(t.Context(), &stream, sources(from), at))
	return stream.Bytes()
}

func sources(from *os.Root) []datacopy.Source {
	return []datacopy.Source{{Name: "alloc/data", Root: from}}
}

// describe describes each entry below a folder, except the folder itself: type, mode, time, content, links.
func describe(t testing.TB, dir string) map[string]string {
	t.Helper()
	all, firsts := map[string]string{}, map[uint64]string{}
	must.NoError(t, filepath.Walk(dir, func(path string, info fs.FileInfo, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		text := fmt.Sprintf("%v %d", info.Mode(), info.ModTime().Unix())
		stat, _ := info.Sys().(*syscall.Stat_t)
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			all[name] = "link " + target
			return err
		case info.Mode().IsRegular():
			content, err := os.ReadFile(path)
			must.NoError(t, err)
			text += fmt.Sprintf(" %d bytes, sum %x, %d links", len(content), crc32.ChecksumIEEE(content), stat.Nlink)
			if stat.Nlink > 1 {
				if firsts[stat.Ino] == "" {
					firsts[stat.Ino] = name
				}
				text += " of " + firsts[stat.Ino]
			}
		}
		all[name] = text
		return nil
	}))
	return all
}

// write writes a file with random content.
func write(t testing.TB, dir, name string, size int) {
	t.Helper()
	content := make([]byte, size)
	_, _ = rand.New(rand.NewSource(int64(size))).Read(content)
	must.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o640))
}

// strange makes a folder with everything that a task can leave, and returns how many special files it has.
func strange(t testing.TB, dir string) (special int64) {
	t.Helper()
	must.NoError(t, os.MkdirAll(filepath.Join(dir, "deep/er"), 0o750))
	write(t, dir, "deep/er/file", 5)
	write(t, dir, "deep.file", 0) // its name is before deep/ by bytes, and after it in the order of paths
	write(t, dir, "large", 3<<20+17)
	write(t, dir, strings.Repeat("n", 255), 3)
	write(t, dir, "not utf-8 \xff\xfe", 4)
	write(t, dir, "new\nline", 4)
	must.NoError(t, os.Link(filepath.Join(dir, "large"), filepath.Join(dir, "deep/linked")))
	must.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, "outside")))
	must.NoError(t, os.Symlink("../../../../..", filepath.Join(dir, "up")))
	must.NoError(t, os.Symlink("deep/er", filepath.Join(dir, "inside")))
	must.NoError(t, os.Symlink(strings.Repeat("x/", 1000), filepath.Join(dir, "long")))
	must.NoError(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	socket, err := net.Listen("unix", filepath.Join(dir, "socket"))
	must.NoError(t, err)
	t.Cleanup(func() { _ = socket.Close() })
	must.NoError(t, os.Mkdir(filepath.Join(dir, "closed"), 0o700))
	write(t, dir, "closed/secret", 6)
	must.NoError(t, os.Mkdir(filepath.Join(dir, "tmp"), 0o777|fs.ModeSticky))
	must.NoError(t, os.Chmod(filepath.Join(dir, "tmp"), 0o777|fs.ModeSticky))
	must.NoError(t, os.Chmod(filepath.Join(dir, "large"), 0o751))
	return 2
}

func TestCopy_strangeFiles(t *testing.T) {
	from, dir := root(t)
	special := strange(t, dir)
	want := describe(t, dir)
	delete(want, "fifo")
	delete(want, "socket")

	r, into := receiver(t, nil)
	must.NoError(t, r.Receive(t.Context(), bytes.NewReader(send(t, from, datacopy.Position{}))))
	must.Eq(t, want, describe(t, into))
	must.Eq(t, special, r.Progress().Skipped)
	must.Eq(t, 3<<20+17+5+3+4+4+6, r.Progress().Bytes)
}

// A stream is cut after several lengths, and the copy continues with a new one.
func TestCopy_continuesAfterACut(t *testing.T) {
	from, dir := root(t)
	strange(t, dir)
	want := describe(t, dir)
	delete(want, "fifo")
	delete(want, "socket")
	whole := len(send(t, from, datacopy.Position{}))
	for _, length := range []int{1, 100, 256<<10 + 7, 256<<10 + 8, 300 << 10, 600<<10 + 1, 1<<20 + 50} {
		r, into := receiver(t, nil)
		streams, sent := 0, 0
		for {
			stream := send(t, from, r.Progress().At)
			if len(stream) <= length {
				must.NoError(t, r.Receive(t.Context(), bytes.NewReader(stream)))
				break
			}
			before := r.Progress().At
			must.ErrorIs(t, r.Receive(t.Context(), bytes.NewReader(stream[:length])), io.ErrUnexpectedEOF)
			if streams++; length < 256<<10+8 {
				must.Eq(t, before, r.Progress().At) // not one whole frame
				length = 256<<10 + 8
			}
			sent += length
		}
		must.Eq(t, want, describe(t, into), must.Sprintf("after %d streams", streams))
		// Each cut loses less than a frame and a header.
		must.Less(t, whole+(streams+1)*(300<<10), sent)
	}
}

// A flipped bit anywhere is found, and the next stream continues.
func TestCopy_damaged(t *testing.T) {
	from, dir := root(t)
	write(t, dir, "a", 600<<10)
	want := describe(t, dir)
	stream := send(t, from, datacopy.Position{})
	for at := 0; at < len(stream); at += 50<<10 + 3 {
		r, into := receiver(t, nil)
		damaged := bytes.Clone(stream)
		damaged[at] ^= 4
		err := r.Receive(t.Context(), bytes.NewReader(damaged))
		must.True(t, errors.Is(err, datacopy.ErrDamaged) || errors.Is(err, io.ErrUnexpectedEOF), must.Sprintf("at %d: %v", at, err))
		must.NoError(t, r.Receive(t.Context(), bytes.NewReader(send(t, from, r.Progress().At))))
		must.Eq(t, want, describe(t, into))
	}
}

// A file of 10 GiB with two short parts is copied as such.
func TestCopy_sparse(t *testing.T) {
	from, dir := root(t)
	file, err := os.Create(filepath.Join(dir, "sparse"))
	must.NoError(t, err)
	must.NoError(t, file.Truncate(10<<30))
	_, err = file.WriteAt([]byte("start of data"), 5<<30)
	must.NoError(t, err)
	_, err = file.WriteAt([]byte("end"), 10<<30-3)
	must.NoError(t, err)
	must.NoError(t, file.Close())
	must.NoError(t, os.WriteFile(filepath.Join(dir, "zero"), nil, 0o600))
	must.NoError(t, os.Truncate(filepath.Join(dir, "zero"), 1<<30))

	stream := send(t, from, datacopy.Position{})
	must.Less(t, 1<<20, len(stream))
	r, into := receiver(t, func(o *datacopy.Options) { o.MaxBytes = 1 << 20 })
	must.NoError(t, r.Receive(t.Context(), bytes.NewReader(stream)))
	for name, size := range map[string]int64{"sparse": 10 << 30, "zero": 1 << 30} {
		info, err := os.Stat(filepath.Join(into, name))
		must.NoError(t, err)
		must.Eq(t, size, info.Size())
		stat, _ := info.Sys().(*syscall.Stat_t)
		must.Less(t, 1<<20, stat.Blocks*512)
	}
	got, err := os.Open(filepath.Join(into, "sparse"))
	must.NoError(t, err)
	defer got.Close()
	for at, want := range map[int64]string{5 << 30: "start of data", 10<<30 - 3: "end"} {
		part := make([]byte, len(want))
		_, err := got.ReadAt(part, at)
		must.NoError(t, err)
		must.Eq(t, want, string(part))
	}
}

func TestCopy_limits(t *testing.T) {
	from, dir := root(t)
	write(t, dir, "a", 1000)
	write(t, dir, "b", 1000)
	stream := send(t, from, datacopy.Position{})
	for name, c := range map[string]struct {
		change func(*datacopy.Options)
		want   error
	}{
		"exactly as many bytes":   {func(o *datacopy.Options) { o.MaxBytes = 2000 }, nil},
		"one byte too many":       {func(o *datacopy.Options) { o.MaxBytes = 1999 }, datacopy.ErrTooLarge},
		"exactly as many entries": {func(o *datacopy.Options) { o.MaxEntries = 2 }, nil},
		"one entry too many":      {func(o *datacopy.Options) { o.MaxEntries = 1 }, datacopy.ErrTooLarge},
		"a disk without room":     {func(o *datacopy.Options) { o.Reserve = 1 << 62 }, datacopy.ErrNoRoom},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := receiver(t, c.change)
			err := r.Receive(t.Context(), bytes.NewReader(stream))
			if c.want == nil {
				must.NoError(t, err)
				return
			}
			must.ErrorIs(t, err, c.want)
		})
	}
}

// A full disk is found by the write that fails, too.
func TestCopy_fullDisk(t *testing.T) {
	into := t.TempDir()
	tmpfs.Mount(t, into, "size=1m")
	from, dir := root(t)
	write(t, dir, "a", 2<<20)
	small, err := os.OpenRoot(into)
	must.NoError(t, err)
	defer small.Close()
	r, err := datacopy.NewReceiver(datacopy.Options{Into: small, Folders: []string{"alloc/data"}, MaxBytes: 1 << 30, Reserve: 1})
	must.NoError(t, err)
	defer r.Close()
	must.ErrorIs(t, r.Receive(t.Context(), bytes.NewReader(send(t, from, datacopy.Position{}))), datacopy.ErrNoRoom)
}

// changing is a stream during which something else happens, once.
type changing struct {
	bytes.Buffer
	change func()
}

func (c *changing) Write(p []byte) (int, error) {
	if c.change != nil {
		c.change()
		c.change = nil
	}
	return c.Buffer.Write(p)
}

// A process that has survived the task writes its folder while it is read. What arrives is a mixture, from this folder
// alone.
func TestSend_changes(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	must.NoError(t, os.WriteFile(secret, []byte("secret"), 0o600))
	for name, c := range map[string]struct {
		change func(dir string) error
		// sizes are those of files that arrive.
		sizes map[string]int64
	}{
		"a file grows": {change: func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "b"), make([]byte, 5<<20), 0o600)
		}, sizes: map[string]int64{"b": 5 << 20}},
		"the file that is read grows": {change: func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "a"), bytes.Repeat([]byte("x"), 5<<20), 0o600)
		}, sizes: map[string]int64{"a": 3 << 20}},
		"the file that is read is cut off": {change: func(dir string) error {
			return os.Truncate(filepath.Join(dir, "a"), 1<<20)
		}, sizes: map[string]int64{"a": 3 << 20, "c/d": 5}},
		"a file goes": {change: func(dir string) error {
			return os.Remove(filepath.Join(dir, "b"))
		}, sizes: map[string]int64{"a": 3 << 20, "c/d": 5}},
		"a link replaces a file": {change: func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "b")), os.Symlink(secret, filepath.Join(dir, "b")))
		}, sizes: map[string]int64{"a": 3 << 20, "c/d": 5}},
		"a link replaces a folder": {change: func(dir string) error {
			return errors.Join(os.RemoveAll(filepath.Join(dir, "c")), os.Symlink(filepath.Dir(secret), filepath.Join(dir, "c")))
		}, sizes: map[string]int64{"a": 3 << 20, "b": 3}},
		"a FIFO replaces a file": {change: func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "b")), unix.Mkfifo(filepath.Join(dir, "b"), 0o600))
		}, sizes: map[string]int64{"a": 3 << 20, "c/d": 5}},
		"a file is added before": {change: func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "Z"), []byte("late"), 0o600)
		}, sizes: map[string]int64{"a": 3 << 20, "c/d": 5}},
	} {
		t.Run(name, func(t *testing.T) {
			from, dir := root(t)
			write(t, dir, "a", 3<<20)
			write(t, dir, "b", 3)
			must.NoError(t, os.Mkdir(filepath.Join(dir, "c"), 0o700))
			write(t, dir, "c/d", 5)
			stream := &changing{change: func() { must.NoError(t, c.change(dir)) }}
			must.NoError(t, datacopy.Send(t.Context(), stream, sources(from), datacopy.Position{}))
			r, into := receiver(t, nil)
			must.NoError(t, r.Receive(t.Context(), &stream.Buffer))
			for name, size := range c.sizes {
				info, err := os.Lstat(filepath.Join(into, name))
				must.NoError(t, err)
				must.Eq(t, size, info.Size())
			}
			for name, what := range describe(t, into) {
				must.StrNotContains(t, what, fmt.Sprintf("%x", crc32.ChecksumIEEE([]byte("secret"))), must.Sprint(name))
			}
			onlyInside(t, into)
		})
	}
}

// Another file system that is mounted in the folder is left out, counted and named. Bug: nothing named it.
func TestSend_mountPoint(t *testing.T) {
	from, dir := root(t)
	write(t, dir, "a", 10)
	mounted := filepath.Join(dir, "mounted")
	must.NoError(t, os.Mkdir(mounted, 0o700))
	tmpfs.Mount(t, mounted, "size=1m")
	write(t, dir, "mounted/other", 10)
	r, into := receiver(t, nil)
	must.NoError(t, r.Receive(t.Context(), bytes.NewReader(send(t, from, datacopy.Position{}))))
	must.MapLen(t, 1, describe(t, into))
	must.Eq(t, 1, r.Progress().Skipped)
	must.EqOp(t, `"alloc/data/mounted"`, r.Progress().Mounts)
}

// The sender reports that it cannot read a folder.
func TestSend_unreadable(t *testing.T) {
	from, dir := root(t)
	deep := dir
	for range 300 {
		deep = filepath.Join(deep, "d")
	}
	must.NoError(t, os.MkdirAll(deep, 0o700))
	var stream bytes.Buffer
	must.ErrorContains(t, datacopy.Send(t.Context(), &stream, sources(from), datacopy.Position{}), "more than 256 folders")
	r, _ := receiver(t, nil)
	err := r.Receive(t.Context(), &stream)
	must.ErrorIs(t, err, datacopy.ErrSource)
	must.ErrorContains(t, err, "more than 256 folders")
}

// Owners are sent as names: the numbers of two machines differ.
func TestCopy_owners(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the test needs the right to change owners")
	}
	from, dir := root(t)
	for name, uid := range map[string]int{"web's": 2001, "root's": 0, "unknown": 2999} {
		write(t, dir, name, 1)
		must.NoError(t, os.Chown(filepath.Join(dir, name), uid, uid))
	}
	must.NoError(t, os.Symlink("x", filepath.Join(dir, "link")))
	must.NoError(t, os.Lchown(filepath.Join(dir, "link"), 2001, 2001))
	var stream bytes.Buffer
	source := sources(from)
	source[0].Owner = func(uid uint32) string { return map[uint32]string{0: "root", 2001: "web"}[uid] }
	must.NoError(t, datacopy.Send(t.Context(), &stream, source, datacopy.Position{}))
	r, into := receiver(t, func(o *datacopy.Options) {
		o.Owner = func(folder, user string) (uid, gid int) {
			must.Eq(t, "alloc/data", folder)
			if user == "web" {
				return 3001, 3002
			}
			return 3009, 3009
		}
	})
	must.NoError(t, r.Receive(t.Context(), &stream))
	for name, want := range map[string]uint32{"web's": 3001, "root's": 3009, "unknown": 3009, "link": 3001} {
		info, err := os.Lstat(filepath.Join(into, name))
		must.NoError(t, err)
		stat, _ := info.Sys().(*syscall.Stat_t)
		must.Eq(t, want, stat.Uid, must.Sprint(name))
	}
}

// archive returns the stream of a sender that writes any entries.
func archive(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	var content bytes.Buffer
	w := tar.NewWriter(&content)
	for _, h := range headers {
		must.NoError(t, w.WriteHeader(&h))
		_, err := w.Write(make([]byte, h.Size))
		must.NoError(t, err)
	}
	must.NoError(t, w.Close())
	return framed(content.Bytes())
}

// framed puts bytes into frames.
func framed(content []byte) []byte {
	var stream []byte
	for len(content) > 0 {
		n := min(len(content), 256<<10)
		stream = binary.BigEndian.AppendUint32(stream, uint32(n))
		stream = binary.BigEndian.AppendUint32(stream, crc32.Checksum(content[:n], crc32.MakeTable(crc32.Castagnoli)))
		stream = append(stream, content[:n]...)
		content = content[n:]
	}
	return append(stream, make([]byte, 8)...)
}

// A sender that another program has replaced cannot write outside the requested folders.
func TestReceive_hostileSender(t *testing.T) {
	file := func(name string) tar.Header {
		return tar.Header{Typeflag: tar.TypeReg, Name: name, Size: 3, Mode: 0o600}
	}
	folder := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o700} }
	link := func(kind byte, name, to string) tar.Header {
		return tar.Header{Typeflag: kind, Name: name, Linkname: to}
	}
	part := func(name, offset, size string) tar.Header {
		h := file(name)
		h.PAXRecords = map[string]string{"NODEDRAIN.offset": offset, "NODEDRAIN.size": size}
		return h
	}
	for name, headers := range map[string][]tar.Header{
		"another folder":          {file("web/local/x")},
		"the folder itself":       {folder("alloc/data")},
		"a file for the folder":   {file("alloc/data")},
		"the start of its name":   {file("alloc/database")},
		"an absolute path":        {file("/alloc/data/x")},
		"up":                      {file("alloc/data/../../../x")},
		"a dot":                   {file("alloc/data/./x")},
		"an empty name":           {file("alloc/data//x")},
		"a long name":             {file("alloc/data/" + strings.Repeat("n", 256))},
		"below nothing":           {file("alloc/data/a/x")},
		"below a file":            {file("alloc/data/a"), file("alloc/data/a/x")},
		"below a link":            {link(tar.TypeSymlink, "alloc/data/a", "/tmp"), file("alloc/data/a/x")},
		"twice":                   {file("alloc/data/a"), file("alloc/data/b"), file("alloc/data/a")},
		"a folder twice":          {folder("alloc/data/a"), folder("alloc/data/a")},
		"a link for a file":       {file("alloc/data/a"), link(tar.TypeSymlink, "alloc/data/a", "/etc/passwd")},
		"a hard link to outside":  {link(tar.TypeLink, "alloc/data/a", "../../etc/passwd")},
		"a hard link to no entry": {link(tar.TypeLink, "alloc/data/b", "alloc/data/a")},
		"a link to nothing":       {link(tar.TypeSymlink, "alloc/data/a", "")},
		"a device":                {{Typeflag: tar.TypeChar, Name: "alloc/data/a", Devmajor: 1, Devminor: 3}},
		"a FIFO":                  {{Typeflag: tar.TypeFifo, Name: "alloc/data/a"}},
		"a part that goes back":   {part("alloc/data/a", "3", "100"), part("alloc/data/a", "1", "100")},
		"a part behind the end":   {part("alloc/data/a", "98", "100")},
		"a negative part":         {part("alloc/data/a", "-3", "100")},
		"a part without number":   {part("alloc/data/a", "0x1", "100")},
		"a negative size":         {part("alloc/data/a", "0", "-1")},
		"negative files":          {{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"NODEDRAIN.skipped": "-1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			r, into := receiver(t, nil)
			must.ErrorIs(t, r.Receive(t.Context(), bytes.NewReader(archive(t, headers...))), datacopy.ErrInvalid)
			must.NoError(t, r.Close())
			onlyInside(t, into)
		})
	}
	t.Run("setuid", func(t *testing.T) {
		r, into := receiver(t, nil)
		h := file("alloc/data/a")
		h.Mode = 0o6755
		must.NoError(t, r.Receive(t.Context(), bytes.NewReader(archive(t, h))))
		info, err := os.Stat(filepath.Join(into, "a"))
		must.NoError(t, err)
		must.Eq(t, 0o755, info.Mode())
	})
}

// onlyInside checks that the folder above alloc/data has nothing else.
func onlyInside(t testing.TB, data string) {
	t.Helper()
	top := filepath.Dir(filepath.Dir(data))
	for _, dir := range []string{top, filepath.Dir(data)} {
		entries, err := os.ReadDir(dir)
		must.NoError(t, err)
		must.Len(t, 1, entries)
	}
}

// Any tree arrives as it is, also if its streams are cut.
func TestCopy_randomTrees(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		from, dir := root(t)
		folders := []string{"."}
		names := rapid.SampledFrom([]string{"a", "b", "a.", "a-b", "ab", "A", "\xff", "z z"})
		for range rapid.IntRange(0, 12).Draw(rt, "entries") {
			name := filepath.Join(rapid.SampledFrom(folders).Draw(rt, "folder"), names.Draw(rt, "name"))
			if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
				continue
			}
			switch rapid.SampledFrom([]string{"folder", "file", "large", "link", "hard"}).Draw(rt, "kind") {
			case "folder":
				must.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o755))
				folders = append(folders, name)
			case "file":
				write(t, dir, name, rapid.IntRange(0, 5000).Draw(rt, "size"))
			case "large":
				write(t, dir, name, rapid.IntRange(0, 3<<20).Draw(rt, "size"))
			case "link":
				must.NoError(t, os.Symlink(names.Draw(rt, "target"), filepath.Join(dir, name)))
			case "hard":
				for first, text := range describe(t, dir) {
					if strings.HasPrefix(text, "-") {
						must.NoError(t, os.Link(filepath.Join(dir, first), filepath.Join(dir, name)))
						break
					}
				}
			}
		}
		r, into := receiver(t, nil)
		for {
			stream := send(t, from, r.Progress().At)
			length := rapid.IntRange(1, 2*len(stream)).Draw(rt, "length")
			if length >= len(stream) {
				must.NoError(t, r.Receive(t.Context(), bytes.NewReader(stream)))
				break
			}
			must.Error(t, r.Receive(t.Context(), bytes.NewReader(stream[:length])))
		}
		must.Eq(t, describe(t, dir), describe(t, into))
	})
}

func TestCopy_endOfTheContext(t *testing.T) {
	from, dir := root(t)
	write(t, dir, "a", 10)
	stream := send(t, from, datacopy.Position{})
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the client stops")
	cancel(cause)
	must.ErrorIs(t, datacopy.Send(ctx, io.Discard, sources(from), datacopy.Position{}), cause)
	r, _ := receiver(t, nil)
	must.ErrorIs(t, r.Receive(ctx, bytes.NewReader(stream)), cause)
}

// FuzzReceive writes any archive below a folder and checks that nothing is outside it.
func FuzzReceive(f *testing.F) {
	from, dir := root(f)
	strange(f, dir)
	var stream bytes.Buffer
	must.NoError(f, datacopy.Send(f.Context(), &stream, sources(from), datacopy.Position{Path: "alloc/data/large", Offset: 3 << 20}))
	f.Add(stream.Bytes()[8:])
	f.Add(archive(f, tar.Header{Typeflag: tar.TypeSymlink, Name: "alloc/data/a", Linkname: ".."})[8:])
	f.Fuzz(func(t *testing.T, content []byte) {
		r, into := receiver(t, func(o *datacopy.Options) { o.MaxBytes, o.MaxEntries = 1<<20, 100 })
		_ = r.Receive(t.Context(), bytes.NewReader(framed(content)))
		must.NoError(t, r.Close())
		onlyInside(t, into)
		must.LessEq(t, 1<<20, r.Progress().Bytes)
	})
}
