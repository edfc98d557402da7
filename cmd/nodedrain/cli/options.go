package cli

import (
	"flag"
	"fmt"
	"strings"
	"time"
)

// Option is a flag of a command, or a heading between flags.
type Option struct {
	// name and value are the flag, and a noun for its value. A switch has no value, a heading no name.
	name, value string
	// text is the sentence of the help. It does not name the default.
	text    string
	declare func(set *flag.FlagSet, name string)
}

// Options are the flags of a command, in the order of the help.
type Options []Option

// Flag returns a flag that sets a variable. The variable holds the default. The usage is the name of
// the flag and a noun for its value, as in "task TASK". A FILE or a DIR is completed.
func Flag[T bool | string | int | int64 | uint64 | float64 | time.Duration](variable *T, usage, text string) Option {
	return option(usage, text, func(set *flag.FlagSet, name string) {
		switch v := any(variable).(type) {
		case *bool:
			set.BoolVar(v, name, *v, "")
		case *string:
			set.StringVar(v, name, *v, "")
		case *int:
			set.IntVar(v, name, *v, "")
		case *int64:
			set.Int64Var(v, name, *v, "")
		case *uint64:
			set.Uint64Var(v, name, *v, "")
		case *float64:
			set.Float64Var(v, name, *v, "")
		case *time.Duration:
			set.DurationVar(v, name, *v, "")
		}
	})
}

// Value returns a flag that calls a function with its value.
func Value(set func(string) error, usage, text string) Option {
	return option(usage, text, func(flags *flag.FlagSet, name string) { flags.Func(name, "", set) })
}

// Heading begins a group of flags. An empty heading is an empty line.
func Heading(text string) Option { return Option{text: text} }

func option(usage, text string, declare func(*flag.FlagSet, string)) Option {
	name, value, _ := strings.Cut(usage, " ")
	return Option{name, value, text, declare}
}

// Set declares the flags in a set.
func (o Options) Set(set *flag.FlagSet) {
	for _, each := range o {
		if each.name != "" {
			each.declare(set, each.name)
		}
	}
}

// Help returns the lines of the flags, which begin with a heading.
func (o Options) Help() string {
	set := flag.NewFlagSet("", flag.ContinueOnError)
	o.Set(set)
	var text strings.Builder
	if len(o) > 0 && o[0].name != "" {
		text.WriteString("\nOptions:\n\n")
	}
	for _, each := range o {
		switch {
		case each.name == "" && each.text != "":
			fmt.Fprintf(&text, "\n%s:\n\n", each.text)
		case each.name == "":
			text.WriteString("\n")
		default:
			sentence := each.text
			if preset := set.Lookup(each.name).DefValue; preset != "" && preset != "0" && preset != "0s" && preset != "false" {
				sentence += " Default: " + preset + "."
			}
			text.WriteString(wrapped(strings.TrimSpace("  -"+each.name+" "+each.value), sentence))
		}
	}
	return text.String()
}

// wrapped returns a flag and its sentence in lines with two columns. A command line in the sentence begins a
// line of its own.
func wrapped(head, sentence string) string {
	const indent, width = 19, 90
	var text strings.Builder
	line := fmt.Sprintf("%-*s", indent, "  "+strings.TrimSpace(head))
	if len(line) > indent {
		text.WriteString(line + "\n")
		line = strings.Repeat(" ", indent)
	}
	for word := range strings.SplitSeq(sentence, " ") {
		word, breaks := strings.CutPrefix(word, "\n")
		if breaks || len(line)+1+len(word) > width {
			text.WriteString(line + "\n")
			line = strings.Repeat(" ", indent)
		}
		line += " " + word
	}
	return text.String() + line + "\n"
}
