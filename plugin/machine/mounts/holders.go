package mounts

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
)

// MaxHolders bounds what [Search.Holders] returns.
const MaxHolders = 8

// restFactor is how many times as long as a pass over /proc a search rests after it: all searches
// together need a tenth of a processor.
const restFactor = 9

// maxRest bounds the rest, because an operator waits for the names of the processes.
const maxRest = 2 * time.Second

// Holder is a process that keeps a mount busy.
type Holder struct {
	PID     int
	Command string
}

// Search finds processes that keep mounts busy. Searches at the same time share one pass over /proc: a pass takes
// long, and a storage plugin may fail for all volumes of a node at once. It is safe for concurrent use.
type Search struct {
	// turn has capacity 1 and holds a value during a pass and the rest before it.
	turn chan struct{}
	// restEnds is when the next pass may begin. It belongs to the one who has the turn.
	restEnds time.Time

	mu sync.Mutex
	// next is the pass that has not begun, or nil; guarded by mu
	next *pass
}

// pass is one pass over /proc.
type pass struct {
	// found are the holders by path. The keys are guarded by the search's mu until the pass begins.
	found map[string][]Holder
	// done is closed after the pass. Then found is read only.
	done chan struct{}
}

// NewSearch returns a search that has found nothing yet.
func NewSearch() *Search { return &Search{turn: make(chan struct{}, 1)} }

// Holders returns processes whose working directory, root, program, mapped files or open files are at a
// path or below it, in the order of their numbers. It sees those of other users as root only, and none of
// another mount namespace in which the mount has another path. It reads /proc alone. It waits for other
// searches, and returns nothing if the context ends before.
func (s *Search) Holders(ctx context.Context, path string) []Holder {
	path = filepath.Clean(path)
	s.mu.Lock()
	if s.next == nil {
		s.next = &pass{found: make(map[string][]Holder), done: make(chan struct{})}
	}
	p := s.next
	p.found[path] = nil
	s.mu.Unlock()
	select {
	case <-p.done:
		return p.found[path]
	case <-ctx.Done():
		return nil
	case s.turn <- struct{}{}:
	}
	defer func() { <-s.turn }()
	select {
	case <-p.done:
		return p.found[path]
	default:
	}
	rest := time.NewTimer(time.Until(s.restEnds))
	defer rest.Stop()
	select {
	case <-rest.C:
	case <-ctx.Done():
		return nil // another one of the pass has the next turn
	}
	s.mu.Lock()
	s.next = nil
	s.mu.Unlock()
	began := time.Now()
	p.check() // others wait for this pass: the context of one caller does not end it
	close(p.done)
	s.restEnds = time.Now().Add(min(maxRest, restFactor*time.Since(began)))
	return p.found[path]
}

// check reads all processes.
func (p *pass) check() {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		paths := p.heldBy(filepath.Join("/proc", entry.Name()))
		if len(paths) == 0 {
			continue
		}
		d, err := process.Describe(pid)
		if err != nil {
			continue
		}
		for path := range paths {
			if len(p.found[path]) < MaxHolders {
				p.found[path] = append(p.found[path], Holder{PID: pid, Command: d.Command})
			}
		}
	}
}

// heldBy returns the paths of which a process has something.
func (p *pass) heldBy(proc string) map[string]bool {
	var held map[string]bool
	check := func(link string) {
		for path := target(link); path != ""; path = parent(path) {
			if _, requested := p.found[path]; requested {
				if held == nil {
					held = make(map[string]bool)
				}
				held[path] = true
			}
		}
	}
	for _, link := range []string{"cwd", "root", "exe"} {
		check(filepath.Join(proc, link))
	}
	for _, dir := range []string{"fd", "map_files"} {
		entries, err := os.ReadDir(filepath.Join(proc, dir))
		if err != nil {
			continue // the process has ended, or is another user's
		}
		for _, entry := range entries {
			check(filepath.Join(proc, dir, entry.Name()))
		}
	}
	return held
}

// target returns the path that a link of /proc names, or nothing. The kernel makes the text of the link
// without the file system.
func target(link string) string {
	to, err := os.Readlink(link)
	if err != nil || !strings.HasPrefix(to, "/") {
		return ""
	}
	return strings.TrimSuffix(to, " (deleted)")
}

// parent returns the folder of a path, or nothing for the root.
func parent(path string) string {
	if path == "/" {
		return ""
	}
	return path[:max(1, strings.LastIndexByte(path, '/'))]
}
