package spelling

import (
	"testing"

	"github.com/shoenig/test/must"
)

func TestDistance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"drian", "drain", 1}, {"nod", "node", 1}, {"kitten", "sitting", 3}, {"größe", "grösse", 2}} {
		must.Eq(t, c.want, distance(c.a, c.b), must.Sprint(c.a, c.b))
		must.Eq(t, c.want, distance(c.b, c.a), must.Sprint(c.b, c.a))
	}
}
