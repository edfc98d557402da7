package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/environment"
)

type pluginBlock struct {
	Name         string         `hcl:"name,label"`
	Enabled      *bool          `hcl:"enabled,optional"`
	StartTimeout hcl.Expression `hcl:"start_timeout,optional"`
	Env          *pluginEnv     `hcl:"env,block"`
	Config       *pluginOwn     `hcl:"config,block"`
	Range        hcl.Range      `hcl:",def_range"`
}

// pluginOwn is the configuration that only the plugin understands.
type pluginOwn struct {
	Body hcl.Body `hcl:",remain"`
}

// pluginEnv has an attribute for each variable.
type pluginEnv struct {
	Body hcl.Body `hcl:",remain"`
}

func (b *pluginEnv) read(r *reader) map[string]string {
	if b == nil {
		return nil
	}
	attributes, found := b.Body.JustAttributes()
	r.found = append(r.found, found...)
	env := make(map[string]string, len(attributes))
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		var value string
		at := attributes[name]
		if !decode(r, at.Expr, &value) {
			if v, found := at.Expr.Value(nil); !found.HasErrors() && v.IsNull() {
				r.add(at.Range, "env", fmt.Sprintf("the variable %s has no value", name))
			}
			continue
		}
		if err := environment.CheckVariable(name, value); err != nil {
			r.add(at.Range, "env", err.Error())
			continue
		}
		env[name] = value
	}
	if err := environment.Check(env); err != nil {
		r.add(b.Body.MissingItemRange(), "env", err.Error())
	}
	return env
}

func readPlugins(r *reader, blocks []pluginBlock) map[string]Plugin {
	plugins := make(map[string]Plugin, len(blocks))
	for _, b := range blocks {
		if _, twice := plugins[b.Name]; twice {
			r.add(b.Range, "plugin", fmt.Sprintf("the plugin %q has two blocks", b.Name))
			continue
		}
		if err := cluster.CheckID(b.Name); err != nil || filepath.Base(b.Name) != b.Name {
			r.add(b.Range, "plugin", fmt.Sprintf("%q is not the name of a file", b.Name))
			continue
		}
		p := Plugin{Name: b.Name, Enabled: b.Enabled == nil || *b.Enabled, StartTimeout: r.duration("start_timeout", b.StartTimeout, 0), Env: b.Env.read(r)}
		if b.Config != nil {
			var found hcl.Diagnostics
			p.Config, found = toJSON(b.Config.Body)
			r.found = append(r.found, found...)
		}
		plugins[b.Name] = p
	}
	return plugins
}

// toJSON returns the content of a block as a JSON object. A block in it is a list of objects under
// its type, and labels are keys around them.
func toJSON(body hcl.Body) (json.RawMessage, hcl.Diagnostics) {
	object, found := toObject(body)
	if found.HasErrors() {
		return nil, found
	}
	text, err := json.Marshal(object)
	if err != nil { // the values are JSON already
		at := body.MissingItemRange()
		return nil, hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "Invalid config", Detail: err.Error(), Subject: &at}}
	}
	return text, nil
}

func toObject(body hcl.Body) (map[string]any, hcl.Diagnostics) {
	object := make(map[string]any)
	native, is := body.(*hclsyntax.Body)
	if !is {
		attributes, found := body.JustAttributes() // in JSON everything is an attribute
		for name, a := range attributes {
			found = append(found, set(object, name, a.Expr)...)
		}
		return object, found
	}
	var found hcl.Diagnostics
	for name, a := range native.Attributes {
		found = append(found, set(object, name, a.Expr)...)
	}
	for _, b := range native.Blocks {
		inner, wrong := toObject(b.Body)
		found = append(found, wrong...)
		for i := len(b.Labels) - 1; i >= 0; i-- {
			inner = map[string]any{b.Labels[i]: inner}
		}
		before, _ := object[b.Type].([]any)
		object[b.Type] = append(before, inner)
	}
	return object, found
}

// set sets a key to the value of an expression.
func set(object map[string]any, name string, expr hcl.Expression) hcl.Diagnostics {
	value, found := expr.Value(nil)
	if found.HasErrors() {
		return found
	}
	text, err := ctyjson.Marshal(value, value.Type())
	if err == nil {
		object[name] = json.RawMessage(text)
		return nil
	}
	at := expr.Range()
	return hcl.Diagnostics{{Severity: hcl.DiagError, Summary: fmt.Sprintf("Invalid %q", name), Detail: err.Error(), Subject: &at}}
}
