package cli

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/spelling"
)

// exitUnknownCommand is the exit code for an unknown command. It is the one of package cli.
const exitUnknownCommand = 127

// removal returns the sentence about a command or a flag of an earlier build, or empty.
func removal(words string) string {
	switch words {
	case "clients":
		return `"nodedrain client" with a block plugin "mock" {} is a node whose tasks are simulated`
	case "server -dev", "server -clients":
		return `"nodedrain dev -simulated" runs a server and nodes with simulated tasks; "nodedrain server -data-dir DIR -bootstrap-expect 1" runs one alone`
	case "demo -real":
		return `"nodedrain dev" runs real tasks`
	case "sim run -trace":
		return "-story prints the events of a run"
	case "sim swarm -metamorphic":
		return "the cases in sim/cases play variants"
	case "demo -without":
		return "to see a drain without budgets, give a job a max_parallel of its count"
	}
	return ""
}

// Misspelled returns the error text for a command that does not exist but resembles one or existed in
// an earlier build, or empty.
func Misspelled(args []string, all Program) string {
	before := "" // the commands that were found so far, each with a space after it
	for _, word := range args {
		next := nextWords(all, before)
		if strings.HasPrefix(word, "-") || len(next) == 0 {
			return ""
		}
		if slices.Contains(next, word) {
			before += word + " "
			continue
		}
		if text := removal(before + word); text != "" {
			return fmt.Sprintf("nodedrain has no command %q any more: %s", before+word, text)
		}
		if like := spelling.Nearest(word, next); like != "" {
			return fmt.Sprintf("nodedrain has no command %q. Did you mean %q?", before+word, before+like)
		}
		return ""
	}
	return ""
}

// nextWords returns the words that can follow the beginning of a command, sorted.
func nextWords(all Program, before string) []string {
	words := map[string]bool{}
	for name := range all {
		if rest, ok := strings.CutPrefix(name, before); ok {
			word, _, _ := strings.Cut(rest, " ")
			words[word] = true
		}
	}
	return slices.Sorted(maps.Keys(words))
}

// undefinedFlag begins the error of package flag for a flag that is not defined.
const undefinedFlag = "flag provided but not defined: -"

// suggestFlag adds to the error of an undefined flag the flag that it resembles.
func suggestFlag(set *flag.FlagSet, err error) error {
	name, undefined := strings.CutPrefix(err.Error(), undefinedFlag)
	if !undefined {
		return err
	}
	if text := removal(set.Name() + " -" + name); text != "" {
		return fmt.Errorf("nodedrain %s has no flag -%s any more: %s", set.Name(), name, text)
	}
	var names []string
	set.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	if like := spelling.Nearest(name, names); like != "" {
		return fmt.Errorf("%w (did you mean -%s?)", err, like)
	}
	return err
}

// parseFlags parses flags. Its error points to the help.
func parseFlags(set *flag.FlagSet, command string, args []string) error {
	err := set.Parse(args)
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w; \"nodedrain %s -h\" lists the options", suggestFlag(set, err), command)
}
