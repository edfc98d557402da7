package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrNoOwner means that this machine stores no owner of a group: Linux before 5.7, or a user without the right.
var ErrNoOwner = errors.New("the kernel stores no owner of a control group")

// ownerAttribute is the extended attribute with the owner of a group. It ends with the folder of the group.
// Only a user who may write to the folder can change it.
const ownerAttribute = "user.nodedrain.owner"

// maxOwner bounds the length of an owner.
const maxOwner = 4096

// SetOwner writes the owner of the group to its folders: any text that identifies it. A group without folders
// has no owner. The error may be ErrNoOwner.
func (g *Group) SetOwner(owner string) error {
	for _, dir := range g.folders() {
		err := unix.Setxattr(dir, ownerAttribute, []byte(owner), 0)
		switch {
		case err == nil, isGone(err):
		case errors.Is(err, unix.ENOTSUP), errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
			return fmt.Errorf("the owner of control group %s: %w: %w", g.name, ErrNoOwner, err)
		default:
			return fmt.Errorf("the owner of control group %s: %w", g.name, err)
		}
	}
	return nil
}

// Owner returns the owner of the group, or "" if it has none that this user may read.
func (g *Group) Owner() (string, error) {
	buf := make([]byte, maxOwner)
	for _, dir := range g.folders() {
		n, err := unix.Getxattr(dir, ownerAttribute, buf)
		switch {
		case err == nil && n > 0:
			return string(buf[:n]), nil
		case err == nil, isGone(err), errors.Is(err, unix.ENODATA), errors.Is(err, unix.ENOTSUP), errors.Is(err, unix.ERANGE), errors.Is(err, unix.EACCES):
		default:
			return "", fmt.Errorf("the owner of control group %s: %w", g.name, err)
		}
	}
	return "", nil
}

// List returns all groups below the parents, also those of other programs, sorted by name.
func (h Hierarchies) List() ([]*Group, error) {
	var names []string
	list := func(dir, suffix string) error {
		entries, err := os.ReadDir(dir)
		if err != nil && !isGone(err) {
			return fmt.Errorf("list control groups: %w", err)
		}
		for _, e := range entries {
			if name, is := strings.CutSuffix(e.Name(), suffix); is && e.IsDir() {
				names = append(names, name)
			}
		}
		return nil
	}
	if h.unified != "" {
		for _, part := range []string{share, reserve} {
			if err := list(filepath.Join(h.unified, slice, part), scope); err != nil {
				return nil, err
			}
		}
	}
	for _, c := range usedV1() {
		if h.v1[c] == "" {
			continue
		}
		if err := list(filepath.Join(h.v1[c], parent), ""); err != nil {
			return nil, err
		}
	}
	slices.Sort(names)
	var groups []*Group
	for _, name := range slices.Compact(names) {
		if g, err := h.Open(name); err == nil { // another name is not that of a task
			groups = append(groups, g)
		}
	}
	return groups, nil
}
