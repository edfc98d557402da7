package jobfields

import (
	"fmt"
	"strings"
)

// Page is the text of docs/jobs.md.
func Page() string {
	var page strings.Builder
	page.WriteString(introduction)
	for _, section := range []struct {
		title, below string
		rows         []Field
	}{
		{"The request", "", requestFields()[1:]},
		{"The job", "", jobFields()},
		{"A group: `TaskGroups[]`", "TaskGroups[].", groupFields()},
		{"A task: `TaskGroups[].Tasks[]`", "TaskGroups[].Tasks[].", taskFields()},
	} {
		fmt.Fprintf(&page, "\n## %s\n\n| field | in HCL | | |\n|---|---|---|---|\n", section.title)
		for _, f := range section.rows {
			if f.Verdict != "" || f.Needs != "" || len(f.Beside) > 0 {
				fmt.Fprintf(&page, "| %s |\n", strings.Join(f.cells(section.below), " | "))
			}
		}
	}
	page.WriteString(keysOfMeta)
	return page.String()
}

// cells are the cells of a row of the page.
func (f Field) cells(below string) []string {
	name := code(f.Name)
	if f.Ours {
		name = "ours"
	}
	verdict := string(f.Verdict)
	if f.Verdict == "" {
		verdict = string(Warned)
	}
	return []string{code(strings.TrimPrefix(f.Path, below)), name, verdict, f.remarks()}
}

// remarks are the reason of a row, and the values that it does not concern.
func (f Field) remarks() string {
	var all []string
	if f.Duration {
		all = append(all, "a duration")
	}
	if f.Why != "" {
		all = append(all, f.Why)
	}
	for _, need := range f.Beside {
		all = append(all, need.remark())
	}
	var values []string
	for _, value := range f.Silent {
		if value != `""` && !strings.HasPrefix(value, "{") {
			values = append(values, code(value))
		}
	}
	switch {
	case len(values) > 0:
		all = append(all, "not at "+strings.Join(values, ", "))
	case len(f.Silent) > 0:
		all = append(all, "not at the defaults of the reference")
	}
	return strings.Join(all, "; ")
}

// remark is the condition in words.
func (c Condition) remark() string {
	text := "only with " + code(hclName(c.Key))
	if len(c.At) > 0 {
		text = codes(c.At) + " " + text
	}
	if len(c.Values) > 0 {
		text += " " + codes(c.Values)
	}
	return text
}

func codes(texts []string) string {
	var all []string
	for _, text := range texts {
		all = append(all, code(text))
	}
	return strings.Join(all, " or ")
}

// code is a text in the font for code, or empty.
func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

const keysOfMeta = `
## Keys of meta

A job file for Nomad's commands cannot have a field that is ours, but it can have keys of meta. In
the meta of a job or a group, keys that begin with ` + "`nodedrain.`" + ` are for the servers:

| key | value | |
|---|---|---|
| ` + "`nodedrain.max_surge`" + ` | a whole number | sets ` + "`Migrate.MaxSurge`" + ` of the group, or of each group of the job without the key |

` + "```hcl" + `
group "web" {
  meta = {
    "nodedrain.max_surge" = "1"
  }
}
` + "```" + `

` + "`Migrate.MaxSurge`" + `, which a job in JSON can have, wins over the keys. ` + "`GET /v1/job/ID`" + ` has it only
if it differs from the keys. Above 0 it is refused for a group whose allocations must stop before
their replacement starts: [the reasons](operators.md#replacement-before-stop). The key has no effect
in jobs of other types than service. The servers warn of that, and of other keys that begin with
` + "`nodedrain.`" + `. Tasks do not find these keys in their environment. A version of a job that differs
only in them replaces no allocation.
`

const introduction = `# Jobs

This page lists every field of a job of the compatible API, and what a registration does with it. It
is generated: ` + "`go test ./httpapi/jobfields -rewrite`" + ` writes it. The servers decide by the same
table, and a test registers a job with each field of the API's Go library alone. A field that is
missing here fails the test.

* **kept**: the servers keep it and act by it. ` + "`GET /v1/job/ID`" + ` returns it.
* **warned**: it has no effect. ` + "`Warnings`" + ` in the answer names it by its path in the file, as in
  ` + "`group \"web\": update.canary is not supported and has no effect: …`" + `.
* **refused**: the job is refused with 400, because to ignore the field would do harm.
* **not read**: it is no part of a job file. The servers set it, or it is elsewhere in the request.

The answers to a registration, to ` + "`plan`" + ` and to ` + "`validate`" + ` have the same warnings.
` + "`nodedrain job run`, `job plan` and `job validate`" + ` print them, and so do the same commands of Nomad.

A row of a block is also for all fields in it. A field is silent if it is missing, null, false, 0 or
empty, or if it has one of the values of its row. These are what Nomad's client fills in.

Some fields have an effect only with another field of their block, as the path of a check only with
its type ` + "`http`" + `. Their rows state it. Without it the servers warn of them, although they keep them.
Null as an element of a list or of a map is refused, other than in the config of a driver.

The servers warn of a key that is in no table, and name the nearest one that is. As everywhere in
the API, the case of a key does not matter. A duration is a number of nanoseconds or a text such as
` + "`\"30s\"`" + `. In an answer it is a number. [api.md](api.md) has the limits of sizes and numbers.
`
