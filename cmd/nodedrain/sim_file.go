package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// playing is a scenario that is to be played.
type playing struct {
	// label names it, replay is the command that plays it again.
	label, replay string
	scenario      *scenario.Scenario
	// file is where it stands, text what stands there; empty if it is of no file.
	file string
	text []byte
	// err says why it cannot be played, or is nil.
	err error
}

// playing reads a scenario file. Warnings are told.
func (c *simRunCommand) playing(file string) playing {
	p := playing{label: strings.TrimSuffix(filepath.Base(file), scenario.Ending), replay: "nodedrain sim run " + quoted(file), file: file}
	if p.text, p.err = os.ReadFile(file); p.err != nil {
		return p
	}
	var warnings []scenario.Warning
	p.scenario, warnings, p.err = scenario.Parse(file, bytes.NewReader(p.text))
	for _, w := range warnings {
		fmt.Fprintln(c.errs, w)
	}
	return p
}

// warn tells what stands in a file and nothing came of.
func (c *simRunCommand) warn(p playing, r *sim.Result) {
	if p.file == "" {
		return // nobody wrote it
	}
	for _, v := range r.Vain {
		text := "nothing comes of it: " + v.Why + "; if it is meant, say maybe before the operation"
		fmt.Fprintln(c.errs, scenario.Warning{File: p.file, Line: v.Line, Text: text})
	}
}

// wrong is what was wrong with a run, each in lines of its own. What is to be rewritten
// only has to keep the guarantees.
func wrong(f *simRunFlags, p playing, r *sim.Result) (wrong []string) {
	for _, v := range r.Violations {
		wrong = append(wrong, v.String())
	}
	if f.rewrite || p.scenario.Story == "" && p.scenario.End == "" {
		return wrong
	}
	for _, section := range [...]struct{ name, want, got string }{
		{"story", p.scenario.Story, r.Story}, {"end", p.scenario.End, r.End},
	} {
		if d := diff(section.want, section.got); d != "" {
			wrong = append(wrong, fmt.Sprintf("the %s is not what the file says (-rewrite has it say so):\n%s", section.name, d))
		}
	}
	return wrong
}

// rewritten writes what came of a run into its file.
func (c *simRunCommand) rewritten(p playing, r *sim.Result) error {
	text := scenario.Rewrite(p.text, r.Story, r.End)
	if bytes.Equal(text, p.text) {
		return nil
	}
	if err := os.WriteFile(p.file, text, 0o644); err != nil {
		return err
	}
	fmt.Fprintf(c.out, "%s is rewritten\n", p.file)
	return nil
}
