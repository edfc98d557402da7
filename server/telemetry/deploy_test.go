package telemetry_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/result"
)

// exported is what a scrape has: the label values of each series by label.
type exported map[string]map[string][]string

var sampleLine = regexp.MustCompile(`(?m)^([a-z_]+)(?:\{(.*)\})? \S+$`)

// readExported reads the golden scrape, and adds the series and labels that Prometheus or the
// collectors of the Go runtime add.
func readExported(t *testing.T) exported {
	t.Helper()
	golden := result.Of(os.ReadFile("testdata/scrape.txt")).OK(t)
	series := exported{"process_resident_memory_bytes": {}}
	for _, line := range sampleLine.FindAllStringSubmatch(string(golden), -1) {
		if series[line[1]] == nil {
			series[line[1]] = map[string][]string{}
		}
		for _, l := range labelMatcher.FindAllStringSubmatch(line[2], -1) {
			series[line[1]][l[1]] = append(series[line[1]][l[1]], l[3])
		}
	}
	for _, labels := range series {
		labels["instance"] = nil
	}
	return series
}

var (
	labelMatcher = regexp.MustCompile(`([a-z_]+)(=~|!~|!=|=)"([^"]*)"`)
	selector     = regexp.MustCompile(`([a-z_]+)\{([^}]*)\}`)
	grouping     = regexp.MustCompile(`\b(?:by|without) \(([^)]*)\)`)
	rangeOf      = regexp.MustCompile(`\[[0-9]+[smhd]\]`)
	word         = regexp.MustCompile(`[a-zA-Z_][a-zA-Z_0-9]*`)
)

// promFunctions are the functions and operators that the expressions use.
func promFunctions() []string {
	return []string{"sum", "max", "rate", "increase", "time", "histogram_quantile", "sort_desc", "absent", "or"}
}

// check returns what is wrong with an expression of Prometheus: a series that is not exported, a
// label that no series of the expression has, a value that the label never has.
func (e exported) check(expr string) (wrong []string) {
	used := map[string]map[string][]string{}
	for _, s := range selector.FindAllStringSubmatch(expr, -1) {
		for _, m := range labelMatcher.FindAllStringSubmatch(s[2], -1) {
			values, has := e[s[1]][m[1]]
			if e[s[1]] != nil && !has {
				wrong = append(wrong, fmt.Sprintf("%s has no label %s", s[1], m[1]))
			}
			for part := range strings.SplitSeq(m[3], "|") {
				if has && m[1] != "code" && !slices.Contains(values, part) { // codes are patterns
					wrong = append(wrong, fmt.Sprintf("%s of %s is never %q", m[1], s[1], part))
				}
			}
		}
	}
	rest := selector.ReplaceAllString(expr, "$1")
	rest = rangeOf.ReplaceAllString(rest, "")
	for _, name := range word.FindAllString(grouping.ReplaceAllString(rest, ""), -1) {
		switch {
		case e[name] != nil:
			used[name] = e[name]
		case !slices.Contains(promFunctions(), name):
			wrong = append(wrong, fmt.Sprintf("no series %s", name))
		}
	}
	if len(used) == 0 {
		wrong = append(wrong, "no series is used")
	}
	for _, g := range grouping.FindAllStringSubmatch(rest, -1) {
		for _, label := range word.FindAllString(g[1], -1) {
			for _, name := range slices.Sorted(maps.Keys(used)) {
				if _, has := used[name][label]; !has {
					wrong = append(wrong, fmt.Sprintf("%s has no label %s", name, label))
				}
			}
		}
	}
	return wrong
}

// The check finds each kind of mistake.
func TestExpressions_mistakes(t *testing.T) {
	t.Parallel()
	series := readExported(t)
	for expr, want := range map[string]string{
		`sum(nodedrain_drain) > 0`:                                                    "no series nodedrain_drain",
		`sum by (stat) (nodedrain_drains) > 0`:                                        "nodedrain_drains has no label stat",
		`sum(nodedrain_drains{phase="draining"}) > 0`:                                 "nodedrain_drains has no label phase",
		`sum(nodedrain_drains{state="past bound"}) > 0`:                               `state of nodedrain_drains is never "past bound"`,
		`nodedrain_allocs_waiting{reason=~"below_budget|none"}`:                       `reason of nodedrain_allocs_waiting is never "none"`,
		`sum(rate(nodedrain_drain_duration_seconds[5m])) > 0`:                         "no series nodedrain_drain_duration_seconds",
		`deriv(nodedrain_witness_size[5m])`:                                           "no series deriv",
		`max by (le, code) (rate(nodedrain_drain_first_mark_seconds_bucket[6h])) > 0`: "nodedrain_drain_first_mark_seconds_bucket has no label code",
		`1 > 0`: "no series is used",
	} {
		must.SliceContains(t, series.check(expr), want, must.Sprint(expr))
	}
	must.SliceEmpty(t, series.check(`sum by (state) (rate(nodedrain_drains{state=~"draining|past_bound"}[5m])) > 0.5`))
}

// alert is one rule of deploy/alerts.yml: each key of the rule, its labels and its annotations.
type alert map[string]string

// readAlerts reads the rules. Every line is "key: value" on one line.
func readAlerts(t *testing.T) (all []alert) {
	t.Helper()
	text := result.Of(os.ReadFile("../../docs/deploy/alerts.yml")).OK(t)
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, value, is := strings.Cut(line, ":")
		must.True(t, is, must.Sprint(line))
		key, value = strings.TrimPrefix(key, "- "), strings.TrimSpace(value)
		if key == "alert" {
			all = append(all, alert{})
		}
		if len(all) == 0 || value == "" {
			must.SliceContains(t, []string{"groups", "name", "rules", "labels", "annotations"}, key, must.Sprint(line))
			continue
		}
		last := all[len(all)-1]
		must.MapNotContainsKey(t, last, key, must.Sprint(line))
		last[key] = strings.Trim(value, `"`)
	}
	must.Positive(t, len(all))
	return all
}

// Each alert uses series that exist, has a severity and a summary whose labels exist, and a
// section in the runbook. The runbook has no section without an alert.
func TestAlerts(t *testing.T) {
	t.Parallel()
	series := readExported(t)
	text := result.Of(os.ReadFile("../../docs/operators.md")).OK(t)
	_, runbook, found := strings.Cut(string(text), "\n## Alerts\n")
	must.True(t, found)
	var sections, names []string
	for _, s := range regexp.MustCompile(`(?m)^### (.*)$`).FindAllStringSubmatch(runbook, -1) {
		sections = append(sections, s[1])
	}
	label := regexp.MustCompile(`\$labels\.([a-z_]+)`)
	for _, a := range readAlerts(t) {
		name := a["alert"]
		names = append(names, name)
		must.SliceEmpty(t, series.check(a["expr"]), must.Sprint(name))
		must.SliceContains(t, []string{"page", "ticket"}, a["severity"], must.Sprint(name))
		must.StrHasSuffix(t, ".", a["summary"], must.Sprint(name))
		for _, l := range label.FindAllStringSubmatch(a["summary"], -1) {
			by := grouping.FindStringSubmatch(a["expr"])
			if by == nil {
				must.Eq(t, "instance", l[1], must.Sprint(name)) // the label that every series of a server has
				continue
			}
			must.SliceContains(t, word.FindAllString(by[1], -1), l[1], must.Sprint(name))
		}
		must.StrHasSuffix(t, "/docs/operators.md#"+strings.ToLower(name), a["runbook_url"])
	}
	must.Eq(t, slices.Sorted(slices.Values(sections)), slices.Sorted(slices.Values(names)))
}

// A sum over no series has no value, and an alert on it does not fire. NoLeader also fires when no
// server can be scraped.
func TestAlerts_noLeaderWithoutServers(t *testing.T) {
	t.Parallel()
	for _, a := range readAlerts(t) {
		if a["alert"] == "NoLeader" {
			must.StrContains(t, a["expr"], "or absent(nodedrain_raft_leads)")
			return
		}
	}
	t.Fatal("no alert NoLeader")
}

// Each panel of the dashboard uses series that exist, and its legend for labels that exist.
func TestDashboard(t *testing.T) {
	t.Parallel()
	series := readExported(t)
	text := result.Of(os.ReadFile("../../docs/deploy/dashboard.json")).OK(t)
	var dashboard struct {
		Panels []struct {
			ID                 int
			Title, Description string
			Targets            []struct{ Expr, LegendFormat string }
		}
	}
	must.NoError(t, json.Unmarshal(text, &dashboard))
	must.Positive(t, len(dashboard.Panels))
	ids := map[int]bool{}
	for _, p := range dashboard.Panels {
		must.False(t, ids[p.ID])
		ids[p.ID] = true
		must.NotEq(t, "", p.Description, must.Sprint(p.Title))
		must.Positive(t, len(p.Targets), must.Sprint(p.Title))
		for _, target := range p.Targets {
			must.SliceEmpty(t, series.check(target.Expr), must.Sprint(p.Title))
			for _, l := range regexp.MustCompile(`\{\{([a-z_]+)\}\}`).FindAllStringSubmatch(target.LegendFormat, -1) {
				must.True(t, strings.Contains(target.Expr, l[1]) || l[1] == "instance", must.Sprint(p.Title, ": ", l[1]))
			}
		}
	}
}
