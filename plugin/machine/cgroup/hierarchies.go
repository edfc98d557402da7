package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/mounts"
)

// ErrNone means that the machine has no hierarchy in which a group can be made.
var ErrNone = errors.New("no control group hierarchy is mounted")

// Hierarchies are the mounted hierarchies. The zero value has none.
type Hierarchies struct {
	unified string            // mount point of cgroup v2, or empty
	v1      map[string]string // mount point of each v1 controller that is used here
}

// usedV1 are the v1 controllers with a folder for each task. The freezer is first: it kills.
func usedV1() []string { return []string{"freezer", "memory", "cpu"} }

// Find reads which hierarchies are mounted. The root is "/", or a folder that plays it in a test:
// Find reads proc/self/mountinfo below it, and all groups lie below it.
func Find(root string) (Hierarchies, error) {
	content, err := os.ReadFile(filepath.Join(root, "proc/self/mountinfo"))
	if err != nil {
		return Hierarchies{}, fmt.Errorf("find control groups: %w", err)
	}
	table, _ := mounts.Parse(bytes.NewReader(content)) // a line that cannot be read is no control group
	h := Hierarchies{v1: map[string]string{}}
	for _, m := range table {
		if m.Root != "/" { // the mount of a part
			continue
		}
		point := filepath.Join(root, m.Point)
		if m.Type == "cgroup2" && h.unified == "" {
			h.unified = point
		}
		if m.Type != "cgroup" {
			continue
		}
		for _, c := range append(usedV1(), "cpuset") {
			if slices.Contains(m.Options, c) && h.v1[c] == "" {
				h.v1[c] = point
			}
		}
	}
	return h, nil
}

// Kind names what the groups use to kill: "v2", "v1" or "none".
func (h Hierarchies) Kind() string {
	switch {
	case h.unified != "":
		return "v2"
	case h.v1["freezer"] != "":
		return "v1"
	default:
		return "none"
	}
}

const (
	slice   = "nomad.slice"
	share   = "share.slice"
	reserve = "reserve.slice"
	scope   = ".scope"
	parent  = "nomad"
	// shareV1 is the cpuset of v1 for tasks without cores of their own.
	shareV1 = "share"
)

// Parent returns the group that contains those of tasks, from the mount point, or the empty string.
func (h Hierarchies) Parent() string {
	switch h.Kind() {
	case "v2":
		return slice
	case "v1":
		return "/" + parent
	}
	return ""
}

// Open returns the group of a name without creating it. It may have no folders. The name is one
// path element of at most 200 bytes; released plugins expect ALLOC.TASK.
func (h Hierarchies) Open(name string) (*Group, error) {
	if name == "" || name[0] == '.' || len(name) > 200 || strings.ContainsAny(name, "/\x00\n") {
		return nil, fmt.Errorf("%q is not the name of a control group", name)
	}
	g := &Group{name: name, home: h}
	if h.unified != "" {
		g.v2 = filepath.Join(h.unified, slice, share, name+scope)
	}
	for _, c := range usedV1() {
		if h.v1[c] != "" {
			g.v1 = append(g.v1, folder{controller: c, path: filepath.Join(h.v1[c], parent, name)})
		}
	}
	if g.v2 == "" && len(g.v1) == 0 {
		return nil, ErrNone
	}
	v2, v1 := h.reserved(name)
	for _, dir := range []string{v2, v1} {
		if _, err := os.Stat(dir); dir != "" && err == nil {
			g.reserve()
		}
	}
	return g, nil
}

// OpenWith is like Open, for a group that has cores for itself if the limits have.
func (h Hierarchies) OpenWith(name string, l Limits) (*Group, error) {
	g, err := h.Open(name)
	if err == nil && len(l.Cores) > 0 {
		g.reserve()
	}
	return g, err
}

// OpenPath returns the group whose Path is given, as a driver gets it from its host. It refuses a
// path that is not of the form that Path returns, for it may be a group that several tasks share.
func (h Hierarchies) OpenPath(path string) (*Group, error) {
	path = filepath.Clean(path)
	for _, name := range []string{strings.TrimSuffix(filepath.Base(path), scope), filepath.Base(path)} {
		if g, err := h.Open(name); err == nil && g.Path() == path {
			return g, nil
		}
	}
	// A host puts tasks with cores of their own beside the others.
	dir, base := filepath.Split(path)
	if name, ok := strings.CutSuffix(base, scope); ok && h.unified != "" && filepath.Clean(dir) == filepath.Join(h.unified, slice, reserve) {
		g, err := h.Open(name)
		if err != nil {
			return nil, err
		}
		g.reserve()
		return g, nil
	}
	return nil, fmt.Errorf("%s is not the control group of one task", path)
}

// Create opens a group and makes it: see [Group.Create].
func (h Hierarchies) Create(name string, l Limits) (*Group, error) {
	g, err := h.OpenWith(name, l)
	if err != nil {
		return nil, err
	}
	return g, g.Create(l)
}

// Create makes the folders of the group and their parents, and sets the limits for which the machine
// has controllers. Folders that exist are taken over. After an error nothing is left of a new group.
func (g *Group) Create(l Limits) error {
	if err := g.create(l); err != nil {
		return errors.Join(fmt.Errorf("create control group %s: %w", g.name, err), g.removeOnce())
	}
	return nil
}

func (g *Group) create(l Limits) error {
	if g.v2 != "" {
		if err := g.home.unifiedParents(); err != nil {
			return err
		}
		if err := os.MkdirAll(g.v2, 0o755); err != nil {
			return err
		}
	}
	if err := g.home.cpusetParents(); err != nil {
		return err
	}
	for _, f := range g.v1 {
		if err := os.MkdirAll(f.path, 0o755); err != nil {
			return err
		}
	}
	return g.limit(l)
}

// Usable reports whether this process may create groups.
func (h Hierarchies) Usable() bool {
	if h.Kind() == "none" {
		return false
	}
	points := []string{}
	if h.unified != "" {
		points = append(points, h.unified)
	}
	for _, c := range usedV1() {
		if h.v1[c] != "" {
			points = append(points, h.v1[c])
		}
	}
	for _, point := range points {
		if unix.Access(point, unix.W_OK) != nil {
			return false
		}
	}
	return true
}

// unifiedParents makes the parents of cgroup v2 and passes the controllers that exist to the tasks.
func (h Hierarchies) unifiedParents() error {
	top := filepath.Join(h.unified, slice)
	for _, dir := range []string{filepath.Join(top, share), filepath.Join(top, reserve)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	available, err := readFields(filepath.Join(h.unified, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for _, dir := range []string{h.unified, top, filepath.Join(top, share), filepath.Join(top, reserve)} {
		for _, c := range []string{"cpuset", "cpu", "memory", "pids"} {
			if slices.Contains(available, c) {
				if err := write(filepath.Join(dir, "cgroup.subtree_control"), "+"+c); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// cpusetParents makes the folders that released plugins need in the cpuset hierarchy of v1.
func (h Hierarchies) cpusetParents() error {
	top := h.v1["cpuset"]
	if top == "" {
		return nil
	}
	from := top
	for _, dir := range []string{filepath.Join(top, parent), filepath.Join(top, parent, shareV1)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} { // a task cannot enter while these are empty
			has, err := readFields(filepath.Join(dir, file))
			if err != nil {
				return err
			}
			all, err := os.ReadFile(filepath.Join(from, file))
			if err != nil {
				return err
			}
			if len(has) == 0 {
				if err := write(filepath.Join(dir, file), strings.TrimSpace(string(all))); err != nil {
					return err
				}
			}
		}
		from = dir
	}
	return nil
}

// readFields returns the words of a file.
func readFields(path string) ([]string, error) {
	b, err := os.ReadFile(path)
	return strings.Fields(string(b)), err
}

// write writes to a file of the kernel, which exists.
func write(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
