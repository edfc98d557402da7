package cli

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"text/template"
)

// OutputFlags are the flags of commands that can print the server's answer unchanged.
type OutputFlags struct {
	json     bool
	template string
}

// Set declares the flags in a set.
func (f *OutputFlags) Set(set *flag.FlagSet) {
	set.BoolVar(&f.json, "json", false, "")
	set.StringVar(&f.template, "t", "", "")
}

// OutputHelp are the options of [outputFlags].
const OutputHelp = `  -json             Print the server's answer as JSON.
  -t TEMPLATE       Format the answer with a template of Go's text/template.`

// Raw reports whether a flag requests the server's answer instead of tables.
func (f *OutputFlags) Raw() bool { return f.json || f.template != "" }

// PrintRaw prints the server's answer. It prints nothing if the template fails.
func PrintRaw(f *OutputFlags, out io.Writer, answer any) error {
	if f.json && f.template != "" {
		return Error("Both json and template formatting are not allowed")
	}
	if f.json {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "    ")
		encoder.SetEscapeHTML(false)
		return encoder.Encode(answer)
	}
	parsed, err := template.New("format").Parse(f.template)
	if err != nil {
		return Errorf("Error formatting the data using template: %v", err)
	}
	var text bytes.Buffer
	if err := parsed.Execute(&text, answer); err != nil {
		return Errorf("Error formatting the data using template: %v", err)
	}
	_, err = fmt.Fprintln(out, text.String())
	return err
}
