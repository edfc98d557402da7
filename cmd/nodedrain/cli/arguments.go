package cli

import (
	"flag"
	"fmt"
	"io"
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

// ParseArguments parses a command line in which flags may follow arguments, and returns the
// arguments. The error points to the help.
func ParseArguments(set *flag.FlagSet, command string, args []string) (parsed []string, err error) {
	set.SetOutput(io.Discard) // the caller prints the error
	for {
		if err := Parse(set, command, args); err != nil {
			return nil, err
		}
		if set.NArg() == 0 {
			return parsed, nil
		}
		parsed = append(parsed, set.Arg(0))
		args = set.Args()[1:]
	}
}

// SetFlags returns the names of the flags that the command line sets.
func SetFlags(set *flag.FlagSet) map[string]bool {
	names := map[string]bool{}
	set.Visit(func(f *flag.Flag) { names[f.Name] = true })
	return names
}

// Exclusive refuses pairs of flags that exclude each other.
func Exclusive(set map[string]bool, pairs [][2]string) error {
	for _, p := range pairs {
		if set[p[0]] && set[p[1]] {
			return fmt.Errorf("-%s and -%s are mutually exclusive", p[0], p[1])
		}
	}
	return nil
}

// RequirePositive refuses numbers set to zero, except the seed. Configurations read zero as
// the default, but a user who sets zero does not expect the default.
func RequirePositive(set *flag.FlagSet) (err error) {
	set.Visit(func(f *flag.Flag) {
		if v := f.Value.String(); f.Name != "seed" && (v == "0" || v == "0s") {
			err = fmt.Errorf("-%s is %s and must be above 0", f.Name, v)
		}
	})
	return err
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
