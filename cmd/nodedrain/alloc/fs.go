package alloc

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// FS is "nodedrain alloc fs".
func FS() *cli.Command {
	var f fsFlags
	return &cli.Command{
		Short: "Show files of an allocation",
		Description: `
  Lists the folder PATH of an allocation, or prints the file PATH. Without PATH, lists the
  folder of the allocation: "alloc" is shared by its tasks, with the logs in "alloc/logs",
  and each task has a folder of its own. ALLOC is the allocation's id or a prefix of it.
`,
		Args: "ALLOC [PATH]", Connects: true, Run: f.run,
		Options: cli.Options{
			cli.Flag(&f.stat, "stat", "Describe the file or folder instead."),
			cli.Flag(&f.exact, "H", "Show sizes in bytes, and exact times in UTC."),
		},
	}
}

// fsFlags are its flags.
type fsFlags struct{ stat, exact bool }

func (f *fsFlags) run(c *cli.Call) error {
	stub, err := allocs(c, false).Find(c, c.Args[0])
	if err != nil {
		return err
	}
	return f.show(c, c.API.Alloc(stub.ID), strings.Join(c.Args[1:], ""))
}

// show describes a path, lists it or prints it. An empty path is the folder of the allocation.
func (f *fsFlags) show(c *cli.Call, a client.Alloc, path string) error {
	path = cmp.Or(path, "/")
	info, err := a.Stat(c.Ctx, path)
	switch {
	case err != nil:
		return cli.Errorf("Error reading %s: %v", path, err)
	case f.stat:
		t := cli.NewTable("Mode", "Size", "Modified Time", "Content Type", "Name")
		t.Row(info.FileMode, f.size(info), f.modified(info), cmp.Or(info.ContentType, "-"), info.Name)
		t.Write(c.Out)
		return nil
	case info.IsDir:
		return f.list(c, a, path)
	}
	file, err := a.Open(c.Ctx, path)
	if err != nil {
		return cli.Errorf("Error reading file: %v", err)
	}
	defer file.Close()
	if _, err := io.Copy(c.Out, file); err != nil {
		return cli.Errorf("Error reading file: %v", err)
	}
	return nil
}

func (f *fsFlags) list(c *cli.Call, a client.Alloc, path string) error {
	files, err := a.Files(c.Ctx, path)
	if err != nil {
		return cli.Errorf("Error listing %s: %v", path, err)
	}
	t := cli.NewTable("Mode", "Size", "Modified Time", "Name")
	for _, info := range files {
		name := info.Name
		if info.IsDir {
			name += "/"
		}
		t.Row(info.FileMode, f.size(info), f.modified(info), name)
	}
	t.Write(c.Out)
	return nil
}

func (f *fsFlags) size(info wire.FileInfo) string {
	if f.exact {
		return fmt.Sprint(info.Size)
	}
	return cli.BytesText(uint64(max(info.Size, 0)))
}

func (f *fsFlags) modified(info wire.FileInfo) string {
	if f.exact {
		return info.ModTime.UTC().Format("2006-01-02T15:04:05.999999999Z07:00")
	}
	return cli.TimeCell(info.ModTime)
}
