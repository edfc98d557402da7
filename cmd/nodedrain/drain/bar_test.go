package drain

import (
	"strings"
	"testing"

	"github.com/shoenig/test/must"
	"github.com/vbauerster/mpb/v8/decor"
)

// The bar and the lines below it fit the terminal.
func TestDrainBar_reasons(t *testing.T) {
	t.Parallel()
	b := new(Bar)
	var held []heldGroup
	for range 20 {
		held = append(held, heldGroup{group: "default/shop.web", reason: "below budget", count: 3, detail: strings.Repeat("very ", 50) + "long"})
	}
	b.latest.Store(&drainProgress{held: held})
	var out strings.Builder
	must.NoError(t, b.reasons(&out, statistics(60)))
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	must.SliceLen(t, heldRows, lines)
	must.Eq(t, `  and 15 more; "nodedrain node explain" lists them`, lines[heldRows-1])
	for _, line := range lines {
		must.LessEq(t, 60, len([]rune(line)))
	}
	must.StrHasPrefix(t, "  3 of default/shop.web: below budget: very very", lines[0])
}

// A bar is drawn until the end, and events stay above it.
func TestDrainBar(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	b := NewBar(&out)
	b.event(began, "something happened")
	b.progress(drainProgress{leaving: leaving{left: 2, most: 3}, at: began, held: []heldGroup{{group: "default/shop.web", reason: "stopping", count: 2}}})
	b.trouble(began, "trouble")
	b.close()
	must.StrContains(t, out.String(), ": something happened\n")
	must.StrContains(t, out.String(), ": trouble\n")
	must.StrContains(t, out.String(), "2 of 3 allocations left")
}

// statistics returns a bar's statistics for a terminal of that width.
func statistics(columns int) decor.Statistics { return decor.Statistics{AvailableWidth: columns} }
