package timeline

import (
	"fmt"
	"strings"
)

// shade is a colour of a class of shapes, in light and dark mode.
type shade struct{ class, property, light, dark string }

// shades are the colours of the picture. A colour has one meaning: orange is a stopping
// allocation, indigo a deadline, brown force.
func shades() []shade {
	return []shade{
		{".page", "fill", "#ffffff", "#12161d"},
		{".panel", "fill", "#f6f8fa", "#1a2029"},
		{"text", "fill", "#1f2933", "#e6eaf0"},
		{".muted", "fill", "#66727f", "#93a0ae"},
		{".halo", "stroke", "#ffffff", "#12161d"},
		{".heading", "fill", "#66727f", "#93a0ae"},
		{".grid", "stroke", "#e1e6eb", "#29313c"},
		{".axis", "stroke", "#9aa7b4", "#4c5866"},
		{".break", "fill", "#eceff3", "#20272f"},
		{".rule", "stroke", "#8b5cf6", "#a78bfa"},
		{".good", "fill", "#1a7f4b", "#2ea86a"},
		{".bad", "fill", "#d1242f", "#f0525c"},

		{".server0", "fill", "#5b7fb9", "#5777ab"},
		{".server1", "fill", "#4f9a94", "#45847f"},
		{".server2", "fill", "#9a78b5", "#8669a0"},
		{".server3", "fill", "#7f8f45", "#72803f"},
		{".server4", "fill", "#7d8b99", "#65727f"},
		{".noleader", "stroke", "#d1242f", "#f0525c"},

		{".fault", "fill", "#b4457f", "#d76aa3"},
		{".lasting", "fill", "#e6b3cd", "#6b3552"},
		{".request", "fill", "#1f2933", "#e6eaf0"},
		{".marks", "fill", "#8b5cf6", "#a78bfa"},
		{".ends", "fill", "#1a7f4b", "#2ea86a"},

		{".starting", "fill", "#c3daf2", "#2b4766"},
		{".running", "fill", "#6ba3d6", "#3f79b0"},
		{".unhealthy", "fill", "#c58fa8", "#8a5470"},
		{".marked", "fill", "#f3c44b", "#c2922a"},
		{".stopping", "fill", "#e5813f", "#bf6429"},
		{".unknown", "fill", "#b3bdc8", "#525e6b"},
		{".lost", "fill", "#dfe4e9", "#2c343f"},
		{".waiting", "stroke", "#a9b4c0", "#566270"},
		{".replaced", "fill", "#2f9e6e", "#3cba83"},
		{".onbar", "fill", "#10202f", "#f2f5f9"},

		{".complete", "fill", "#2f9e6e", "#3cba83"},
		{".deadline", "fill", "#3f51b5", "#7f9cff"},
		{".forced", "fill", "#6d4c41", "#bcaaa4"},
		{".cancelled", "fill", "#7d8b99", "#8593a1"},
		{".nodegone", "fill", "#4a5561", "#b6c0cb"},
		{".runson", "fill", "#6ba3d6", "#3f79b0"},
		{".due", "stroke", "#3f51b5", "#7f9cff"},

		{".room", "fill", "#bfe3cf", "#1f5138"},
		{".tight", "fill", "#f8dd94", "#6d551a"},
		{".below", "fill", "#f19a93", "#94302c"},
		{".healthy", "stroke", "#3d7a5c", "#62b58c"},
		{".limit", "stroke", "#3a4653", "#c3ccd6"},
		{".count", "stroke", "#a9b4c0", "#566270"},

		{".violation", "stroke", "#d1242f", "#f0525c"},
		{".flag", "fill", "#d1242f", "#c93a43"},
	}
}

// style returns the style sheet. It has no CSS variables, because some SVG viewers do not support
// them.
func style() string {
	var light, dark strings.Builder
	for _, s := range shades() {
		fmt.Fprintf(&light, "%s{%s:%s}\n", s.class, s.property, s.light)
		fmt.Fprintf(&dark, "%s{%s:%s}\n", s.class, s.property, s.dark)
	}
	return `text{font:12px ui-sans-serif,system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif}
.title{font-size:20px;font-weight:600}
.mono{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
.heading{font-size:10px;font-weight:600;letter-spacing:1px}
.name{font-weight:600}
.small,.onbar{font-size:10px}
.right{text-anchor:end}
.middle{text-anchor:middle}
text.white{fill:#ffffff;font-weight:600}
.grid,.axis,.rule,.waiting,.due,.healthy,.limit,.count,.violation,.noleader{fill:none;shape-rendering:crispEdges}
.rule{opacity:.28}
.dense{opacity:.1}
.due,.limit{stroke-dasharray:4 3}
.count,.noleader{stroke-dasharray:1 3}
.limit,.violation{stroke-width:2}
.violation{opacity:.8}
.halo{stroke-width:4px;stroke-linejoin:round;paint-order:stroke}
` + light.String() + "@media (prefers-color-scheme:dark){\n" + dark.String() + "}\n"
}
