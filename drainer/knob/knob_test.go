package knob_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/drainer/knob"
)

type order uint8

type config struct {
	Number int
	Rate   float64
	Span   time.Duration
	Late   time.Duration
	Order  order
}

func (c *config) knobs() knob.List {
	return knob.List{
		{Name: "number", Field: "Number", Value: knob.Int(&c.Number, 2, 10)},
		{Name: "rate", Field: "Rate", Value: knob.Rate(&c.Rate, 2.5)},
		{Name: "span", Field: "Span", Value: knob.Duration(&c.Span, time.Minute)},
		{Name: "late", Field: "Late", Value: knob.DurationOrNone(&c.Late, time.Hour)},
		{Name: "order", Field: "Order", Value: knob.Choice(&c.Order, "first", "second", "third")},
	}
}

func TestKnob_set(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		knob       int
		text, want string
	}{
		{0, "2", ""},
		{0, "1", `"1" must be >= 2`},
		{0, "0", `"0" is not a number above zero`},
		{0, "x", `"x" is not a number above zero`},
		{1, "0.25", ""},
		{1, "-1", `"-1" must be > 0`},
		{1, "NaN", `"NaN" must be > 0`},
		{1, "0", `"0" is not a number above zero`},
		{2, "1h30m", ""},
		{2, "-1s", `"-1s" is not a duration: write 5s, 10m or 1h30m`},
		{2, "none", `"none" is not a duration: write 5s, 10m or 1h30m`},
		{3, "none", ""},
		{3, "10m", ""},
		{4, "third", ""},
		{4, "fourth", `unknown value "fourth": expected one of first, second, third`},
	} {
		c := &config{}
		k := c.knobs()[test.knob]
		err := k.Value.Set(test.text)
		if test.want != "" {
			must.EqError(t, err, test.want)
			must.True(t, k.Value.IsZero())
			continue
		}
		must.NoError(t, err)
		must.EqOp(t, test.text, k.Value.String())
	}
}

func TestList_defaultsAndBounds(t *testing.T) {
	t.Parallel()
	c := &config{}
	must.NoError(t, c.knobs().Validate(), must.Sprint("zero fields are defaults"))
	c.knobs().SetDefaults()
	must.Eq(t, config{10, 2.5, time.Minute, time.Hour, 0}, *c)
	for _, k := range c.knobs() {
		must.EqOp(t, k.Value.Default(), k.Value.String())
	}
	for want, c := range map[string]config{
		"Number must be >= 2":                  {Number: -1},
		"Rate must be > 0":                     {Rate: -1},
		"Span must be >= 0":                    {Span: -1},
		"Order must be first, second or third": {Order: 3},
	} {
		must.EqError(t, c.knobs().Validate(), want)
	}
	must.NoError(t, (&config{Late: -1}).knobs().Validate())
}
