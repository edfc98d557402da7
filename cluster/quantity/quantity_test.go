//race:skip one goroutine
package quantity_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/shoenig/test/must"
	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/cluster/quantity"
)

func TestParse_Compares(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		left, right string
		want        int
	}{
		{"11441 MiB", "2 GiB", 1},
		{"2048 MiB", "2GiB", 0},
		{"2 GiB", "2 GB", 1},
		{"1 kB", "1 KB", 0},
		{"1 KiB", "1024 B", 0},
		{"1EB", "1000 PB", 0},
		{"1e3", "1000", 0},
		{"1e-3 GB", "1 MB", 0},
		{"1E3B", "1 kB", 0},
		{"1 EiB", "1024 PiB", 0},
		{"1 TiB/s", "1 TB/s", 1},
		{"0.1", ".1", 0},
		{"5.", "+5", 0},
		{"-1 W", "1 mW", -1},
		{"1 MW", "1 mW", 1},
		{"1000 uW", "1 mW", 0},
		{"0.3 kW", "300 W", 0},
		{"1.41 GHz", "1410 MHz", 0},
		{"1 kHz", "1000 Hz", 0},
		{"9223372036854775807", "9223372036854775806", 1},
		{"9007199254740993", "9007199254740992", 1}, // equal as floats
		{"9223372036854775807 EiB", "9223372036854775808 EiB", -1},
	} {
		left, is := quantity.Parse(test.left)
		must.True(t, is, must.Sprint(test.left))
		right, is := quantity.Parse(test.right)
		must.True(t, is, must.Sprint(test.right))
		order, comparable := left.Order(right)
		must.True(t, comparable)
		must.Eq(t, test.want, order, must.Sprint(test))
		order, _ = right.Order(left)
		must.Eq(t, -test.want, order)
	}
}

// A number without a unit does not compare with one that has a unit, and amounts not with rates.
func TestOrder_NeedsOneDimension(t *testing.T) {
	t.Parallel()
	texts := []string{"1", "1 B", "1 B/s", "1 Hz", "1 W"}
	for i, left := range texts {
		for k, right := range texts {
			l, _ := quantity.Parse(left)
			r, _ := quantity.Parse(right)
			_, comparable := l.Order(r)
			must.Eq(t, i == k, comparable, must.Sprint(left, " ", right))
		}
	}
}

func TestParse_RefusesOthers(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", " ", "B", "MiB", "-", ".", "+.", "1 iB", "1 kiB", "1 mib", "1 KKB", "1 X", "1 B/m", "1 /s", "1 MHz/s", "1 THz", "1 mB", "--1", "1..2", "0x10",
		"1_000", "1/2", "Inf", "NaN", "1e401", "1e99999999999999999999", "1 2", "１", strings.Repeat("1", quantity.MaxBytes+1),
	} {
		_, is := quantity.Parse(text)
		must.False(t, is, must.Sprint(text))
	}
	_, is := quantity.Float(math.NaN(), "")
	must.False(t, is)
	_, is = quantity.Float(math.Inf(-1), "MiB")
	must.False(t, is)
	_, is = quantity.Int(1, "potato")
	must.False(t, is)
}

// The values of attributes are those of their texts.
func TestValues(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom(units()).Draw(t, "unit")
		whole, real := rapid.Int64().Draw(t, "int"), rapid.Float64().Draw(t, "float")
		check := func(q quantity.Quantity, is bool, text string) {
			must.True(t, is)
			parsed, is := quantity.Parse(text)
			must.True(t, is, must.Sprint(text))
			order, comparable := q.Order(parsed)
			must.True(t, comparable)
			must.Eq(t, 0, order, must.Sprint(text))
		}
		q, is := quantity.Int(whole, unit)
		check(q, is, fmt.Sprint(whole, " ", unit))
		q, is = quantity.Float(real, unit)
		check(q, is, fmt.Sprint(real, unit))
	})
}

// table is every unit with its dimension and scale, written by hand.
func table() map[string][2]string {
	all := map[string][2]string{
		"": {"", "1"}, "Hz": {"f", "1"}, "kHz": {"f", "1e3"}, "MHz": {"f", "1e6"}, "GHz": {"f", "1e9"},
		"uW": {"p", "1e-6"}, "mW": {"p", "1e-3"}, "W": {"p", "1"}, "kW": {"p", "1e3"}, "MW": {"p", "1e6"}, "GW": {"p", "1e9"},
	}
	for unit, scale := range map[string]string{
		"B": "1", "kB": "1e3", "KB": "1e3", "MB": "1e6", "GB": "1e9", "TB": "1e12", "PB": "1e15", "EB": "1e18",
		"KiB": "1024", "MiB": "1048576", "GiB": "1073741824", "TiB": "1099511627776", "PiB": "1125899906842624", "EiB": "1152921504606846976",
	} {
		all[unit], all[unit+"/s"] = [2]string{"b", scale}, [2]string{"r", scale}
	}
	return all
}

func units() []string { return slices.Sorted(maps.Keys(table())) }

// twin reads a quantity with a regular expression, the table and the parser of package big.
func twin(text string) (number *big.Rat, dimension string, is bool) {
	parts := regexp.MustCompile(`^\s*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[ \t]*(\S*)\s*$`).FindStringSubmatch(text)
	if parts == nil || len(text) > quantity.MaxBytes {
		return nil, "", false
	}
	unit, known := table()[parts[2]]
	if exponent := regexp.MustCompile(`[eE]([+-]?)0*([0-9]*)`).FindStringSubmatch(parts[1]); exponent != nil &&
		(len(exponent[2]) > 3 || len(exponent[2]) == 3 && exponent[2] > "400") {
		return nil, "", false
	}
	number, is = new(big.Rat).SetString(parts[1])
	if !known || !is {
		return nil, "", false
	}
	scale, _ := new(big.Rat).SetString(unit[1])
	return number.Mul(number, scale), unit[0], true
}

// Two texts compare as in the twin.
func FuzzParse(f *testing.F) {
	for _, seed := range [][2]string{
		{"11441 MiB", "2 GiB"}, {"1e400", "1E-400B"}, {"5.EB", ".5e3"}, {" +1\tkB/s ", "1 MW"}, {"1e+03Hz", "-0"}, {"1ee", "1e"}, {"1e0000000000000000000001 W", "1EiB/s"},
		{"\v1\f", "1\u00a0B"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, left, right string) {
		l, is := quantity.Parse(left)
		number, dimension, want := twin(strings.TrimSpace(left))
		want = want && len(left) <= quantity.MaxBytes
		must.Eq(t, want, is, must.Sprintf("%q", left))
		r, isRight := quantity.Parse(right)
		other, otherDimension, wantRight := twin(strings.TrimSpace(right))
		wantRight = wantRight && len(right) <= quantity.MaxBytes
		must.Eq(t, wantRight, isRight, must.Sprintf("%q", right))
		if !is || !isRight {
			return
		}
		order, comparable := l.Order(r)
		must.Eq(t, dimension == otherDimension, comparable)
		if comparable {
			must.Eq(t, cmp.Compare(number.Cmp(other), 0), order)
		}
	})
}
