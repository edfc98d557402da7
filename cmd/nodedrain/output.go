package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"text/template"
)

// outputFlags are the flags of commands that can print what a server said as it is.
type outputFlags struct {
	json     bool
	template string
}

func (f *outputFlags) set(set *flag.FlagSet) {
	set.BoolVar(&f.json, "json", false, "")
	set.StringVar(&f.template, "t", "", "")
}

// outputHelp are the options of [outputFlags].
const outputHelp = `  -json             Print what the server says, as JSON.
  -t TEMPLATE       Print it by a template of Go's text/template.`

// raw reports whether what the server said is to be printed as it is.
func (f *outputFlags) raw() bool { return f.json || f.template != "" }

// printRaw prints what the server said. Nothing is printed if the template cannot be.
func printRaw[T any](f *outputFlags, out io.Writer, what T) error {
	if f.json && f.template != "" {
		return said("Both json and template formatting are not allowed")
	}
	if f.json {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "    ")
		encoder.SetEscapeHTML(false)
		return encoder.Encode(what)
	}
	parsed, err := template.New("format").Parse(f.template)
	if err != nil {
		return saidf("Error formatting the data using template: %v", err)
	}
	var text bytes.Buffer
	if err := parsed.Execute(&text, what); err != nil {
		return saidf("Error formatting the data using template: %v", err)
	}
	_, err = fmt.Fprintln(out, text.String())
	return err
}
