package cli

import (
	"flag"
	"fmt"
	"math"
	"strings"
)

// Arguments names the arguments of a command, as in "ALLOC [TASK]". One in brackets is optional, and the last
// one may end with "...": it can be repeated.
type Arguments string

// bounds returns the smallest and the largest number of arguments.
func (a Arguments) bounds() (least, most int) {
	for word := range strings.FieldsSeq(string(a)) {
		most++
		if word[0] != '[' {
			least++
		}
	}
	if strings.Contains(string(a), "...") {
		most = math.MaxInt
	}
	return least, most
}

// usage is the error of another number of arguments.
func (a Arguments) usage() string {
	numbers := [...]string{"no", "one", "two", "three"}
	least, most := a.bounds()
	text := "This command takes " + numbers[least]
	switch {
	case most == 0:
		return text + " arguments"
	case least == 0 && most == 1:
		return "This command takes either one or no arguments"
	case most == math.MaxInt:
		text += " or more"
	case most > least:
		text += " or " + numbers[most]
	}
	text += " argument"
	if most > 1 {
		text += "s"
	}
	words := strings.Fields(strings.ToLower(strings.ReplaceAll(string(a), "FILE", "PATH")))
	for i, word := range words {
		name := strings.Trim(word, "[.]")
		words[i] = strings.Replace(word, name, "<"+name+">", 1)
	}
	return text + ": " + strings.Join(words, " ")
}

// parseArguments parses a command line in which flags may follow arguments, and returns the
// arguments. The error points to the help.
func parseArguments(set *flag.FlagSet, command string, args []string) (parsed []string, err error) {
	for {
		if err := parseFlags(set, command, args); err != nil {
			return nil, err
		}
		if set.NArg() == 0 {
			return parsed, nil
		}
		parsed = append(parsed, set.Arg(0))
		args = set.Args()[1:]
	}
}

// ListFlag is a list: the flag may be repeated, or hold several items separated by commas.
type ListFlag []string

func (l *ListFlag) String() string { return strings.Join(*l, ",") }

// Set adds the items between the commas.
func (l *ListFlag) Set(text string) error {
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item == "" {
			return fmt.Errorf("%q has an empty item", text)
		}
		*l = append(*l, strings.TrimSpace(item))
	}
	return nil
}
