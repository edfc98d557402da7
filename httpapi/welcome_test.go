package httpapi_test

import (
	"encoding/xml"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi"
)

// A browser without a token sees which build the server is, and links that the server has. The page
// loads nothing.
func TestWelcome(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	url := w.serveAs(guarded(w), httpapi.Options{Build: "v1.2.3 <main>"}).URL
	got := request(t, "GET", url+"/", "")
	must.Eq(t, 200, got.code)
	must.Eq(t, got.body, request(t, "GET", url+"/ui", "").body)
	must.StrContains(t, got.body, "Version: v1.2.3 &lt;main&gt;")
	must.StrContains(t, got.body, "(needs a token)")
	for _, loads := range []string{"src=", "<link", "<script", "<img", "@import"} {
		must.StrNotContains(t, got.body, loads)
	}
	links := regexp.MustCompile(`href="(/[^"]*)"`).FindAllStringSubmatch(got.body, -1)
	must.SliceLen(t, 7, links)
	for _, link := range links {
		code := request(t, "GET", url+link[1], "", "X-Nomad-Token", "reader-token").code
		if strings.HasPrefix(link[1], "/v1/metrics") {
			must.Eq(t, 404, code) // this server has no metrics
			continue
		}
		must.Eq(t, 200, code, must.Sprint(link[1]))
	}
	must.Eq(t, 404, request(t, "GET", url+"/index.html", "").code)
	must.Eq(t, 404, request(t, "PUT", url+"/", "").code)

	// Without access control no token is needed.
	open := request(t, "GET", w.serve(httpapi.Options{}).URL+"/", "").body
	must.StrNotContains(t, open, "token")
	must.StrContains(t, open, "Version: "+httpapi.DefaultBuild)
	for line := range strings.Lines(visible(t, open)) {
		must.LessEq(t, 60, len(strings.TrimSpace(line)), must.Sprint(line)) // fits a narrow terminal as it is, except prose, which wraps
	}
}

// visible is the text of the items of a page's lists: what a text browser does not wrap well.
func visible(t *testing.T, page string) string {
	t.Helper()
	_, body, _ := strings.Cut(page, "<body>")
	d := xml.NewDecoder(strings.NewReader("<body>" + body))
	d.Strict = false
	var text strings.Builder
	item := false
	for {
		token, err := d.Token()
		if err == io.EOF {
			return text.String()
		}
		if err != nil { // the end of html without its beginning
			return text.String()
		}
		switch token := token.(type) {
		case xml.StartElement:
			item = item || token.Name.Local == "li"
		case xml.EndElement:
			if token.Name.Local == "li" {
				item = false
				text.WriteString("\n")
			}
		case xml.CharData:
			if item {
				text.Write(token)
			}
		}
	}
}
