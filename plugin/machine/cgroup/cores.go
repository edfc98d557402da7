package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// cpus is the file with the cores of a group.
const cpus = "cpuset.cpus"

// pool is the part of a hierarchy with the cores of all tasks.
type pool struct {
	// whole is the file with the cores of all tasks together.
	whole string
	// groups are the files of the groups with cores of their own.
	groups []string
	// rest is the file with the cores of all other tasks.
	rest string
	// empty: an empty file of the rest is the whole.
	empty bool
}

// pools returns the pools of the hierarchies with a cpuset controller.
func (h Hierarchies) pools() (pools []pool, err error) {
	if h.unified != "" {
		top := filepath.Join(h.unified, slice)
		groups, err := filepath.Glob(filepath.Join(top, reserve, "*"+scope, cpus))
		if err != nil {
			return nil, err
		}
		pools = append(pools, pool{whole: filepath.Join(top, cpus+".effective"), groups: groups, rest: filepath.Join(top, share, cpus), empty: true})
	}
	if h.v1["cpuset"] != "" {
		top := filepath.Join(h.v1["cpuset"], parent)
		groups, err := filepath.Glob(filepath.Join(top, "*", cpus))
		if err != nil {
			return nil, err
		}
		rest := filepath.Join(top, shareV1, cpus)
		groups = slices.DeleteFunc(groups, func(file string) bool { return file == rest })
		pools = append(pools, pool{whole: filepath.Join(top, cpus), groups: groups, rest: rest})
	}
	return slices.DeleteFunc(pools, func(p pool) bool {
		_, err := os.Stat(p.rest)
		return isGone(err)
	}), nil
}

// Pins reports whether groups can have cores for themselves: the machine has a cpuset controller. A group must
// have been created before.
func (h Hierarchies) Pins() bool {
	pools, err := h.pools()
	return err == nil && len(pools) > 0
}

// shareRest gives the tasks without cores of their own the cores that no group has. If none is left, they have
// all. Several processes may do so at the same time: the last one that writes has read what the others wrote.
func (h Hierarchies) shareRest() error {
	pools, err := h.pools()
	if err != nil {
		return err
	}
	for _, p := range pools {
		for range 10 {
			done, err := p.share()
			if err != nil {
				return fmt.Errorf("share the cores that no task has for itself: %w", err)
			}
			if done {
				break
			}
		}
	}
	return nil
}

// share writes the rest. It reports true if the rest was right before.
func (p pool) share() (done bool, err error) {
	whole, err := readCores(p.whole)
	if err != nil {
		return false, err
	}
	rest := whole
	for _, file := range p.groups {
		own, err := readCores(file)
		if err != nil && !isGone(err) {
			return false, err
		}
		rest = rest.Without(own)
	}
	if len(rest) == 0 {
		rest = whole
	}
	if p.empty && len(rest) == len(whole) {
		rest = nil
	}
	present, err := readCores(p.rest)
	if err != nil || slices.Equal(present, rest) {
		return true, err
	}
	return false, write(p.rest, rest.String()+"\n")
}

func readCores(file string) (cluster.Cores, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	cores, err := cluster.ParseCores(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return cores, nil
}

// reserved returns the folders in v2 and in the cpuset hierarchy of v1 of a group with cores for itself. Each is empty
// if the hierarchy is not mounted.
func (h Hierarchies) reserved(name string) (v2, v1 string) {
	if h.unified != "" {
		v2 = filepath.Join(h.unified, slice, reserve, name+scope)
	}
	if h.v1["cpuset"] != "" && name != shareV1 {
		v1 = filepath.Join(h.v1["cpuset"], parent, name)
	}
	return v2, v1
}

// pin gives the group its cores, and takes them from the tasks without cores of their own.
func (g *Group) pin(cores cluster.Cores) error {
	if g.v2 != "" {
		if err := write(filepath.Join(g.v2, cpus), cores.String()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, f := range g.v1 {
		if f.controller != "cpuset" {
			continue
		}
		mems, err := os.ReadFile(filepath.Join(filepath.Dir(f.path), "cpuset.mems"))
		if err != nil {
			return err
		}
		// A task cannot enter while one of them is empty.
		if err := errors.Join(write(filepath.Join(f.path, "cpuset.mems"), strings.TrimSpace(string(mems))), write(filepath.Join(f.path, cpus), cores.String())); err != nil {
			return err
		}
	}
	return g.home.shareRest()
}
