// Package allocdir makes and removes the folders of allocations on a node. Drivers expect this
// tree:
//
//	ALLOC/alloc/logs   log files and FIFOs: the client's
//	ALLOC/alloc/tmp    shared by the tasks
//	ALLOC/alloc/data   shared by the tasks
//	ALLOC/TASK/local   the task's
//	ALLOC/TASK/secrets the task's
//	ALLOC/TASK/private the client's
//	ALLOC/TASK/tmp     the task's temporary files
//	ALLOC/.incoming    data of an ephemeral disk that arrives: the client's
//
// ALLOC and TASK are encoded ids: see package pathname. A driver derives the folder of a task from its
// name, so the client gives it [TaskFolder] as the name of the task. A folder whose name has only the
// hash of a long id holds the id in the file .id.
//
// A folder is readable by its owner only. If all tasks run as the client's user, no other user enters
// the tree. A task with a user of its own owns its folders and can reach them, and no other folder.
// If tasks of an allocation have different users, they share alloc/tmp and alloc/data with all users
// of the machine who have the id of the allocation: the folders above cannot be listed.
//
// All access goes through [os.Root]: no symbolic link leads out of the tree.
package allocdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/pathname"
)

// shared is the folder that all tasks of an allocation share.
const shared = "alloc"

// Folders is the folder of all allocations of a node. Several goroutines may use it, one for each
// allocation.
type Folders struct {
	path string
	root *os.Root
}

// Open opens the folder of all allocations, an absolute path, and makes it if it does not exist. The
// folders above it must let the users of tasks through.
func Open(path string) (*Folders, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("folder of allocations: %q is not an absolute path", path)
	}
	if err := os.MkdirAll(path, 0o711); err != nil {
		return nil, fmt.Errorf("folder of allocations: %w", err)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("folder of allocations: %w", err)
	}
	if err := root.Chmod(".", 0o711); err != nil {
		return nil, errors.Join(fmt.Errorf("folder of allocations: %w", err), root.Close())
	}
	f := &Folders{path: path, root: root}
	_ = f.makeTrash() // while there is room: a later removal may need to free a full disk
	return f, nil
}

// Close closes the folder.
func (f *Folders) Close() error { return f.root.Close() }

// Task is a task of an allocation.
type Task struct {
	Name string
	// User is the name or the number of the user that runs the task. Empty is the client's.
	User string
}

// Alloc returns the path of an allocation's folder.
func (f *Folders) Alloc(alloc string) string { return filepath.Join(f.path, pathname.Encode(alloc)) }

// Logs returns the path of the folder of an allocation's logs.
func (f *Folders) Logs(alloc string) string { return filepath.Join(f.Alloc(alloc), shared, "logs") }

// Task returns the path of a task's folder.
func (f *Folders) Task(alloc, task string) string {
	return filepath.Join(f.Alloc(alloc), TaskFolder(task))
}

// TaskFolder returns the name of a task's folder. Different tasks have different folders, and none has
// the one that all share.
func TaskFolder(task string) string {
	if task == shared {
		return "%61lloc" // Encode leaves every "a" as it is, so no other task has this folder.
	}
	return pathname.Encode(task)
}

// owner is the user of a folder.
type owner struct{ uid, gid int }

// ownerOf returns the owner of a file of a real file system.
func ownerOf(info fs.FileInfo) owner {
	stat, is := info.Sys().(*syscall.Stat_t)
	if !is {
		return self()
	}
	return owner{int(stat.Uid), int(stat.Gid)}
}

func self() owner { return owner{os.Geteuid(), os.Getegid()} }

// lookup returns a user of the machine.
func lookup(name string) (owner, error) {
	if name == "" {
		return self(), nil
	}
	u, err := user.Lookup(name)
	if _, number := strconv.Atoi(name); err != nil && number == nil {
		u, err = user.LookupId(name)
	}
	if err != nil {
		return owner{}, err
	}
	uid, badUID := strconv.Atoi(u.Uid)
	gid, badGID := strconv.Atoi(u.Gid)
	return owner{uid, gid}, errors.Join(badUID, badGID)
}

// Admit sets the mode of an existing folder of the client, so that tasks reach what lies below it.
// Users are the users of the tasks, as in [Task]. If all of them are the client's user, no other user
// may enter the folder. If the others have the same primary group, the members of this group may enter
// it. If they have different groups, every user of the machine may enter it. No other user may list
// the folder or change its content.
func Admit(path string, users []string) error {
	mine := self()
	through, mode := mine, fs.FileMode(0o700)
	for _, name := range users {
		who, err := lookup(name)
		switch {
		case err != nil:
			return err
		case who.uid == mine.uid:
		case mode == 0o700:
			through, mode = owner{mine.uid, who.gid}, 0o710
		case through.gid != who.gid:
			through, mode = mine, 0o711
		}
	}
	if err := os.Lchown(path, through.uid, through.gid); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}

// Build makes the folders of an allocation. It can be repeated, also while tasks run. An error names
// what is missing, for example a user.
func (f *Folders) Build(alloc string, tasks []Task) error {
	name := pathname.Encode(alloc)
	err := f.build(name, tasks)
	if err == nil {
		err = f.label(name, alloc)
	}
	for _, task := range tasks {
		if err == nil {
			err = f.label(path.Join(name, TaskFolder(task.Name)), task.Name)
		}
	}
	if err != nil {
		return fmt.Errorf("make the folders of allocation %s: %w", alloc, err)
	}
	return nil
}

func (f *Folders) build(alloc string, tasks []Task) error {
	owners := map[string]owner{}
	together := []owner{}
	for _, task := range tasks {
		who, err := lookup(task.User)
		if err != nil {
			return fmt.Errorf("task %s: %w", task.Name, err)
		}
		owners[task.Name] = who
		if !slices.Contains(together, who) {
			together = append(together, who)
		}
	}
	mine := self()
	// Other users pass through this folder to theirs.
	through := fs.FileMode(0o711)
	common, commonMode := mine, fs.FileMode(0o777)|fs.ModeSticky
	switch {
	case len(together) == 1:
		common, commonMode = together[0], 0o700
		if common == mine {
			through = 0o700
		}
	case len(together) == 0:
		through, commonMode = 0o700, 0o700
	}
	folders := []folder{
		{alloc, mine, through},
		{path.Join(alloc, shared), mine, through},
		{path.Join(alloc, shared, "logs"), mine, 0o700},
		{path.Join(alloc, shared, "tmp"), common, commonMode},
		{path.Join(alloc, shared, "data"), common, commonMode},
	}
	for _, task := range tasks {
		who, top := owners[task.Name], path.Join(alloc, TaskFolder(task.Name))
		// The task may enter and list its folder and not change what is in it: the client and drivers
		// write there as root.
		enter := fs.FileMode(0o750)
		if who == mine {
			enter = 0o700
		}
		folders = append(folders,
			folder{top, owner{mine.uid, who.gid}, enter},
			folder{path.Join(top, "local"), who, 0o700},
			folder{path.Join(top, "secrets"), who, 0o700},
			folder{path.Join(top, "private"), mine, 0o700},
			folder{path.Join(top, "tmp"), who, 0o777 | fs.ModeSticky},
		)
	}
	for _, d := range folders {
		if err := f.make(d); err != nil {
			return err
		}
	}
	return nil
}

type folder struct {
	name string
	owner
	mode fs.FileMode
}

// make makes a folder, or corrects its owner and mode.
func (f *Folders) make(d folder) error {
	if err := f.root.Mkdir(d.name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := f.root.Lstat(d.name)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", d.name)
	}
	if err := f.root.Lchown(d.name, d.uid, d.gid); err != nil {
		return err
	}
	return f.root.Chmod(d.name, d.mode)
}

// Link makes a symbolic link below the folder of a task, and the folders above it. The link of an earlier
// call is replaced. What else has the name is an error. The folders are the client's, or belong to the
// task's user below "local".
func (f *Folders) Link(alloc string, task Task, name, target string) error {
	if err := f.link(alloc, task, name, target); err != nil {
		return fmt.Errorf("link a volume for task %s of allocation %s: %w", task.Name, alloc, err)
	}
	return nil
}

func (f *Folders) link(alloc string, task Task, name, target string) error {
	who, err := lookup(task.User)
	if err != nil {
		return err
	}
	top := path.Join(pathname.Encode(alloc), TaskFolder(task.Name))
	// Through a root of its own: a link that the task has made does not lead out of its folder.
	folder, err := f.root.OpenRoot(top)
	if err != nil {
		return err
	}
	defer folder.Close()
	above := ""
	for _, element := range splitPath(path.Dir(name)) {
		above = path.Join(above, element)
		if err := folder.Mkdir(above, 0o750); errors.Is(err, fs.ErrExist) {
			continue
		} else if err != nil {
			return err
		}
		if err := folder.Lchown(above, who.uid, who.gid); err != nil {
			return err
		}
	}
	if was, err := folder.Readlink(name); err == nil {
		if was == target {
			return nil
		}
		if err := folder.Remove(name); err != nil {
			return err
		}
	}
	return folder.Symlink(target, name)
}

// splitPath returns the elements of a clean relative path.
func splitPath(p string) []string {
	if p == "." {
		return nil
	}
	return strings.Split(p, "/")
}
