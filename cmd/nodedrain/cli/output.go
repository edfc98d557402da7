package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"text/template"
)

// outputFlags are the flags of commands that can print the server's answer unchanged.
type outputFlags struct {
	json     bool
	template string
}

func (f *outputFlags) options() Options {
	return Options{
		Flag(&f.json, "json", "Print the server's answer as JSON."),
		Flag(&f.template, "t TEMPLATE", "Format the answer with a template of Go's text/template."),
	}
}

// Raw reports whether a flag requests the server's answer instead of tables.
func (c *Call) Raw() bool { return c.output.json || c.output.template != "" }

// PrintRaw prints the server's answer as the flags require. It prints nothing if the template fails.
func (c *Call) PrintRaw(answer any) error {
	f, out := &c.output, c.Out
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
