package jobfields

import (
	"net/http"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/failure"
)

// isService reports whether a block is a service of a group or of a task.
func isService(n *node) bool { return strings.HasSuffix(n.Path, "Services[]") }

// checks warns of what has no effect, or not the expected one, in the checks of a service, although each field of them is
// kept.
func (c *check) checks(service *node, members map[string]any, at place) {
	n := service.children["checks"]
	list, _ := valueOf(members, n.key).([]any)
	ofService := valueOf(members, "CheckRestart")
	for i, element := range list {
		one, is := element.(map[string]any)
		if !is {
			continue
		}
		below := at.within(n, labelOf(n, element, i))
		if method, is := valueOf(one, "Method").(string); is && inOtherCase(method) && valueOf(one, "Type") == "http" {
			c.warnings.add("%s.method %s is sent as it is written: the case matters, and most servers expect %s", below.text(), failure.Quoted(method), strings.ToUpper(method))
		}
		own := valueOf(one, "CheckRestart")
		if hasLimit(own) || hasLimit(ofService) {
			continue
		}
		const noLimit = "%s.check_restart has no effect without a limit: it restarts nothing"
		switch {
		case own != nil:
			c.warnings.add(noLimit, below.text())
		case ofService != nil:
			c.warnings.add(noLimit, at.text())
		}
	}
}

// hasLimit reports whether a check_restart block restarts tasks. A check takes what it leaves out from that of its
// service.
func hasLimit(block any) bool {
	members, is := block.(map[string]any)
	return is && !zero(valueOf(members, "Limit"))
}

// inOtherCase reports whether a method is one of HTTP except for its case.
func inOtherCase(method string) bool {
	upper := strings.ToUpper(method)
	return upper != method && slices.Contains([]string{
		http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodConnect, http.MethodOptions, http.MethodTrace,
	}, upper)
}
