package drawing

import _ "embed"

// style is the style sheet, with the colours in light and dark mode. A colour has one meaning:
// orange is a stopping allocation, indigo a deadline, brown force. It has no CSS variables, because
// some SVG viewers do not support them.
//
//go:embed style.css
var style string
