package planted

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Source reads a file of the repository, by its name from the top, with slashes.
type Source func(file string) (text string, err error)

// SourceIn reads files below a folder.
func SourceIn(root string) Source {
	return func(file string) (string, error) {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		return string(text), err
	}
}

// Apply returns the files that the bug changes, as they are with it, by name.
// An error says that a hunk does not apply: the code has moved on, and the bug is
// to be planted anew or dropped.
func (b *Bug) Apply(read Source) (map[string]string, error) {
	changed := map[string]string{}
	for _, h := range b.Hunks {
		text, again := changed[h.File]
		if !again {
			var err error
			if text, err = read(h.File); err != nil {
				return nil, fmt.Errorf("%s.bug:%d: %w", b.Name, h.Line, err)
			}
		}
		after, err := h.apply(text)
		if err != nil {
			return nil, fmt.Errorf("%s.bug:%d: %s: %w", b.Name, h.Line, h.File, err)
		}
		changed[h.File] = after
	}
	return changed, nil
}

// apply puts the new text in the place of the old, which must be there once.
func (h Hunk) apply(text string) (string, error) {
	// A newline before both makes the old text begin where a line does.
	text, old := "\n"+text, "\n"+h.Old()
	// Counted one position after the other: matches may overlap.
	count := 0
	for rest := text; strings.Contains(rest, old); count++ {
		rest = rest[strings.Index(rest, old)+1:]
	}
	if count != 1 {
		return "", fmt.Errorf("the old text is there %d times, not once", count)
	}
	return strings.Replace(text, old, "\n"+h.New(), 1)[1:], nil
}

// Plant writes the changed files into a folder, and beside them an overlay that
// has the go command read them instead of those below root. It returns the
// overlay's file, for the flag -overlay.
func (b *Bug) Plant(root, dir string) (overlay string, err error) {
	changed, err := b.Apply(SourceIn(root))
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for file, text := range changed {
		copied := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(copied, []byte(text), 0o600); err != nil {
			return "", fmt.Errorf("planting %s: %w", b.Name, err)
		}
		replace[filepath.Join(root, filepath.FromSlash(file))] = copied
	}
	list, err := json.Marshal(struct{ Replace map[string]string }{replace})
	if err != nil {
		return "", fmt.Errorf("planting %s: %w", b.Name, err)
	}
	overlay = filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, list, 0o600); err != nil {
		return "", fmt.Errorf("planting %s: %w", b.Name, err)
	}
	return overlay, nil
}

// Build builds a command of the repository, such as ./cmd/nodedrain, with the bug in
// it. It writes below dir and returns the command's file. root is the top of the
// repository, absolute.
func (b *Bug) Build(ctx context.Context, root, dir, command string) (binary string, err error) {
	overlay, err := b.Plant(root, dir)
	if err != nil {
		return "", err
	}
	if binary, err = build(ctx, root, dir, command, "-overlay", overlay); err != nil {
		return "", fmt.Errorf("%s: %w", b.Name, err)
	}
	return binary, nil
}

// build builds a command below dir, with flags.
func build(ctx context.Context, root, dir, command string, flags ...string) (binary string, err error) {
	binary = filepath.Join(dir, path.Base(command))
	run := exec.CommandContext(ctx, "go", slices.Concat([]string{"build", "-o", binary}, flags, []string{command})...)
	run.Dir = root
	if output, err := run.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", command, err, output)
	}
	return binary, nil
}
