package sim

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// playing is a scenario to play.
type playing struct {
	// label names the scenario, replay is the command that plays it again.
	label, replay string
	scenario      *scenario.Scenario
	// file is the scenario's file and text the file's content; empty without a file.
	file string
	text []byte
	// err is why the scenario cannot be played, or nil.
	err error
}

// read reads a scenario file and prints its warnings.
func (c *runCommand) read(file string) playing {
	p := playing{label: strings.TrimSuffix(filepath.Base(file), scenario.Extension), replay: "nodedrain sim run " + quoted(file), file: file}
	if p.text, p.err = os.ReadFile(file); p.err != nil {
		return p
	}
	var warnings []scenario.Warning
	p.scenario, warnings, p.err = scenario.Parse(file, bytes.NewReader(p.text))
	for _, w := range warnings {
		fmt.Fprintln(c.call.Errs, w)
	}
	return p
}

// warn prints a warning for each operation in a file that had no effect.
func (c *runCommand) warn(p playing, r *sim.Result) {
	if p.file == "" {
		return // generated scenarios may hold operations without effect
	}
	for _, v := range r.NoEffect {
		text := "the operation has no effect: " + v.Why + "; if this is intended, write maybe before the operation"
		fmt.Fprintln(c.call.Errs, scenario.Warning{File: p.file, Line: v.Line, Text: text})
	}
}

// wrong returns the failures of a run. With -rewrite only violations count.
func (c *runCommand) wrong(p playing, r *sim.Result) (wrong []string) {
	for _, v := range r.Violations {
		wrong = append(wrong, v.String())
	}
	if c.rewrite || p.scenario.Story == "" && p.scenario.End == "" {
		return wrong
	}
	for _, section := range [...]struct{ name, expected, got string }{
		{"story", p.scenario.Story, r.Story}, {"end", p.scenario.End, r.End},
	} {
		if d := diff(section.expected, section.got); d != "" {
			wrong = append(wrong, fmt.Sprintf("the %s differs from the file (-rewrite updates the file):\n%s", section.name, d))
		}
	}
	return wrong
}

// rewritten writes the result of a run into its file.
func (c *runCommand) rewritten(p playing, r *sim.Result) error {
	text := scenario.Rewrite(p.text, r.Story, r.End)
	if bytes.Equal(text, p.text) {
		return nil
	}
	if err := os.WriteFile(p.file, text, 0o644); err != nil {
		return err
	}
	fmt.Fprintf(c.call.Out, "%s rewritten\n", p.file)
	return nil
}

// quoted quotes a word for a shell.
func quoted(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:,@%+=", r)
	}
	if word != "" && strings.TrimFunc(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
