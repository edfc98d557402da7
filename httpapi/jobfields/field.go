// Package jobfields decides what a registration does with each field of a job: it is kept, it has no effect and
// the answer warns of it, or the job is refused. One table has every field of the compatible API's job:
// [Fields]. [Check] reads a request by it, and docs/jobs.md is its text: [Page].
package jobfields

import (
	"slices"
	"strings"
	"unicode"
)

// Verdict is what a registration does with a field.
type Verdict string

// The verdicts. A block without a verdict has rows for its fields.
const (
	Kept    Verdict = "kept"
	Warned  Verdict = "warned"
	Refused Verdict = "refused"
	// NotRead is a field that the servers set, and that a registration need not have.
	NotRead Verdict = "not read"
)

// Field is a row of the table.
type Field struct {
	// Path is the field in JSON, below the job: "TaskGroups[].Update.Canary". "[]" are the elements of a list,
	// and "{}" the values of a map.
	Path string
	// Name is the last part of the path in an HCL file, or empty if HCL has no such field.
	Name string
	// Verdict is also that of all fields below the path, unless it is empty.
	Verdict Verdict
	// Why is the reason for a verdict other than Kept. Of a kept field it is a remark, or empty.
	Why string
	// Silent are the values, in JSON, that are neither warned of nor refused: what the reference's client fills
	// in, and what the servers answer. An object is such a value if each of its fields is equal. Without any it is
	// the zero value.
	Silent []string
	// Duration marks a kept duration, which may be a text such as "30s".
	Duration bool
	// Needs is a field of the block without which the block has no effect, or empty.
	Needs string
	// Beside are the conditions under which the field has an effect. Each must hold.
	Beside []Condition
	// Ours marks a field that the compatible API does not have.
	Ours bool
}

// Condition is a condition on another field of the same block.
type Condition struct {
	// Key is the other field.
	Key string
	// Values are the texts of the other field with which the condition holds. Without any it is each value but the empty one.
	Values []string
	// At are the texts of the field itself that need the condition. Without any it is each value but the empty one.
	At []string
}

// Fields returns the table. A block comes before its fields.
func Fields() []Field { return slices.Concat(jobFields(), groupFields(), taskFields()) }

func row(path string, verdict Verdict, why string) Field {
	return Field{Path: path, Name: hclName(path), Verdict: verdict, Why: why}
}

func block(path string) Field        { return row(path, "", "") }
func kept(path string) Field         { return row(path, Kept, "") }
func warned(path, why string) Field  { return row(path, Warned, why) }
func refused(path, why string) Field { return row(path, Refused, why) }
func notRead(path, why string) Field { return row(path, NotRead, why) }

// named sets the name in HCL.
func (f Field) named(name string) Field {
	f.Name = name
	return f
}

// silent sets the values without a warning.
func (f Field) silent(values ...string) Field {
	f.Silent = values
	return f
}

func (f Field) duration() Field {
	f.Duration = true
	return f
}

// with adds a condition: the field has an effect only if the other one has one of the values, or any without values.
func (f Field) with(key string, values ...string) Field {
	f.Beside = append(slices.Clip(f.Beside), Condition{Key: key, Values: values})
	return f
}

// needing limits the last condition to some values of the field.
func (f Field) needing(values ...string) Field {
	f.Beside[len(f.Beside)-1].At = values
	return f
}

// remark sets the remark of a kept field.
func (f Field) remark(why string) Field {
	f.Why = why
	return f
}

// hclName is the usual name of a field in HCL: "max_parallel" for "MaxParallel".
func hclName(path string) string {
	var name strings.Builder
	before := ' '
	for _, c := range key(path) {
		if unicode.IsUpper(c) && unicode.IsLower(before) {
			name.WriteByte('_')
		}
		name.WriteRune(unicode.ToLower(c))
		before = c
	}
	return name.String()
}

// key is the last part of a path, without "[]" and "{}".
func key(path string) string {
	_, last := parent(path)
	return strings.TrimRight(last, "[]{}")
}

// parent splits the last part off a path.
func parent(path string) (above, last string) {
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		return path[:i], path[i+1:]
	}
	return "", path
}
