package jobfields

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/failure"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/spelling"
)

// ourKeys are the known keys of meta that begin with [cluster.MetaPrefix].
func ourKeys() []string { return []string{cluster.MetaMaxSurge} }

// ourMeta warns of keys of meta that look like ours and have no effect.
func (c *check) ourMeta(root *node, request map[string]any) {
	job := root.children["job"]
	w, is := valueOf(request, "Job").(map[string]any)
	if !is {
		return
	}
	at := place{}.within(job, "")
	kind, _ := valueOf(w, "Type").(string)
	own := valueOf(valueMap(w, "Migrate"), "MaxSurge")
	c.metaOf(valueMap(w, "Meta"), at, kind, own)
	groups, _ := valueOf(w, "TaskGroups").([]any)
	for i, element := range groups {
		n := job.children["taskgroups"]
		group, _ := element.(map[string]any)
		at := at.within(n, labelOf(n, element, i))
		surge := valueOf(valueMap(group, "Migrate"), "MaxSurge")
		if surge == nil {
			surge = own
		}
		c.metaOf(valueMap(group, "Meta"), at, kind, surge)
		tasks, _ := valueOf(group, "Tasks").([]any)
		for i, element := range tasks {
			n := n.children["tasks"]
			task, _ := element.(map[string]any)
			at := at.within(n, labelOf(n, element, i))
			for _, key := range oursIn(valueMap(task, "Meta")) {
				c.warnings.add("%s: meta: key %s has no effect: it belongs to the meta of the group or the job", at.text(), failure.Quoted(key))
			}
		}
	}
}

// metaOf checks the meta of a job or a group. The surge is the max_surge of the migrate block that holds there, or nil.
func (c *check) metaOf(meta map[string]any, at place, kind string, surge any) {
	for _, key := range oursIn(meta) {
		switch {
		case !slices.Contains(ourKeys(), key):
			text := fmt.Sprintf("%s: meta: unknown key %s has no effect", at.text(), failure.Quoted(key))
			if like := nearestKey(key); like != "" {
				text += fmt.Sprintf("; the nearest known key is %q", like)
			}
			c.warnings.add("%s", text)
		case kind != "" && kind != string(cluster.JobService):
			c.warnings.add("%s: meta: key %q has no effect in a job of the type %s: it is for the type service", at.text(), key, failure.Quoted(kind))
		case surge != nil && fmt.Sprint(surge) != fmt.Sprint(meta[key]):
			c.warnings.add("%s: meta: key %q has no effect: max_surge of the migrate block is %v", at.text(), key, surge)
		}
	}
}

func nearestKey(key string) string {
	if len(key) > failure.QuotedBytes {
		return ""
	}
	return spelling.Nearest(strings.ToLower(key), ourKeys())
}

// oursIn returns the keys with our prefix in any case, sorted.
func oursIn(meta map[string]any) (keys []string) {
	for _, key := range slices.Sorted(maps.Keys(meta)) {
		if strings.HasPrefix(strings.ToLower(key), cluster.MetaPrefix) {
			keys = append(keys, key)
		}
	}
	return keys
}

// valueMap is a member of an object that is an object, or nil.
func valueMap(object map[string]any, key string) map[string]any {
	value, _ := valueOf(object, key).(map[string]any)
	return value
}
