// Package redact removes secrets from rows, for callers that may only read. Begin with [Job].
package redact

import (
	"encoding/json"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Hidden replaces a value that only callers with the right to write receive.
const Hidden = "[redacted]"

// Job returns the job without its secrets: the environments of tasks, the configurations of their drivers, the
// options of mounts, and the headers, the bodies and the arguments of checks. It returns the same pointer for a job that has none.
func Job(j *cluster.Job) *cluster.Job {
	if !hasSecrets(j) {
		return j
	}
	c := j.Copy()
	for _, g := range c.TaskGroups {
		if g == nil {
			continue
		}
		for i := range g.Volumes {
			g.Volumes[i].MountOptions = nil
		}
		for _, t := range g.Tasks {
			if t == nil {
				continue
			}
			//lint:order each key gets the same value
			for name := range t.Env {
				t.Env[name] = Hidden
			}
			t.Config = withoutValues(t.Config)
		}
		for _, s := range g.ServiceDefinitions() {
			for i := range s.Checks {
				hideCheck(&s.Checks[i])
			}
		}
	}
	return c
}

func hideCheck(c *cluster.ServiceCheck) {
	//lint:order each key gets the same value
	for name := range c.Headers {
		c.Headers[name] = []string{Hidden}
	}
	for i := range c.Args {
		c.Args[i] = Hidden
	}
	if c.Body != "" {
		c.Body = Hidden
	}
}

// withoutValues returns the configuration of a driver with its keys alone.
func withoutValues(config json.RawMessage) json.RawMessage {
	if len(config) == 0 {
		return config
	}
	var values map[string]json.RawMessage
	if json.Unmarshal(config, &values) != nil {
		return json.RawMessage(`{}`) // an older server has taken something that is no object
	}
	text, err := json.Marshal(Values(values))
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return text
}

func hasSecrets(j *cluster.Job) bool {
	for _, g := range j.TaskGroups {
		if g == nil {
			continue
		}
		if slices.ContainsFunc(g.Volumes, func(r cluster.VolumeRequest) bool { return r.MountOptions != nil }) {
			return true
		}
		for _, s := range g.ServiceDefinitions() {
			if slices.ContainsFunc(s.Checks, func(c cluster.ServiceCheck) bool { return len(c.Headers)+len(c.Args)+len(c.Body) > 0 }) {
				return true
			}
		}
		for _, t := range g.Tasks {
			if t != nil && (len(t.Env) > 0 || len(t.Config) > 0) {
				return true
			}
		}
	}
	return false
}

// Values returns the keys of a map, with hidden values.
func Values[V any](secrets map[string]V) map[string]string {
	keys := make(map[string]string, len(secrets))
	//lint:order each key gets the same value
	for key := range secrets {
		keys[key] = Hidden
	}
	return keys
}
