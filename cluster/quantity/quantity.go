// Package quantity reads numbers with units, such as "11441 MiB", and compares them exactly.
// Constraints on devices use them.
//
// A number is decimal: digits with an optional sign, fraction and exponent. The units are
//
//	B, kB, KB, MB, GB, TB, PB, EB     bytes in powers of 1000
//	KiB, MiB, GiB, TiB, PiB, EiB      bytes in powers of 1024
//	each of them with /s              rates of bytes
//	Hz, kHz, MHz, GHz                 frequencies
//	uW, mW, W, kW, MW, GW             powers
//
// Case matters: mW are thousandths, and MW millions.
package quantity

import (
	"math/big"
	"strconv"
	"strings"
)

// Bounds on a number. They bound what a comparison costs.
const (
	// MaxBytes bounds the text of a number with its unit.
	MaxBytes = 512
	// maxExponent bounds an exponent and its negative. It is large enough for each float64.
	maxExponent = 400
)

// Quantity is a number of a dimension. The zero value is not usable: see [Parse].
type Quantity struct {
	// number is in the base unit of the dimension.
	number    *big.Rat
	dimension string
}

// The dimensions. A number without a unit has none.
const (
	bytes   = "bytes"
	rate    = "bytes per second"
	hertz   = "hertz"
	watts   = "watts"
	noUnits = ""
)

// Parse reads a number and a unit, which blanks may separate, and reports whether the text is such a
// quantity.
func Parse(text string) (q Quantity, is bool) {
	if len(text) > MaxBytes {
		return Quantity{}, false
	}
	text = strings.TrimSpace(text)
	end := numberEnd(text)
	number, is := parseNumber(text[:end])
	if !is {
		return Quantity{}, false
	}
	return scaled(number, strings.TrimLeft(text[end:], " \t"))
}

// Int returns a quantity of the unit, which may be empty, and false for an unknown unit.
func Int(value int64, unit string) (Quantity, bool) {
	return scaled(new(big.Rat).SetInt64(value), unit)
}

// Float returns a quantity of the unit, which may be empty, and false for an unknown unit and a number that is
// not finite. Its number is the shortest decimal that gives the value: 0.1 is a tenth.
func Float(value float64, unit string) (Quantity, bool) {
	number, is := parseNumber(strconv.FormatFloat(value, 'g', -1, 64))
	if !is {
		return Quantity{}, false
	}
	return scaled(number, unit)
}

// Order returns -1, 0 or 1, and false if the dimensions differ. A number without a unit compares only with
// others without one.
func (q Quantity) Order(o Quantity) (order int, comparable bool) {
	if q.dimension != o.dimension {
		return 0, false
	}
	return q.number.Cmp(o.number), true
}

func scaled(number *big.Rat, unit string) (Quantity, bool) {
	dimension, scale, is := unitOf(unit)
	if !is {
		return Quantity{}, false
	}
	return Quantity{number: number.Mul(number, scale), dimension: dimension}, true
}

// unitOf returns the dimension of a unit and how many base units it is.
func unitOf(unit string) (dimension string, scale *big.Rat, is bool) {
	switch {
	case unit == "":
		return noUnits, big.NewRat(1, 1), true
	case strings.HasSuffix(unit, "Hz"):
		scale, is = power(strings.TrimSuffix(unit, "Hz"), "kMG", 1000)
		return hertz, scale, is
	case strings.HasSuffix(unit, "W"):
		switch prefix := strings.TrimSuffix(unit, "W"); prefix {
		case "u":
			return watts, big.NewRat(1, 1_000_000), true
		case "m":
			return watts, big.NewRat(1, 1000), true
		default:
			scale, is = power(prefix, "kMG", 1000)
			return watts, scale, is
		}
	}
	dimension = bytes
	if inSeconds, found := strings.CutSuffix(unit, "/s"); found {
		dimension, unit = rate, inSeconds
	}
	prefix, found := strings.CutSuffix(unit, "B")
	if !found {
		return "", nil, false
	}
	if binary, found := strings.CutSuffix(prefix, "i"); found {
		scale, is = power(binary, "KMGTPE", 1024)
		return dimension, scale, is && binary != ""
	}
	if prefix == "K" {
		prefix = "k"
	}
	scale, is = power(prefix, "kMGTPE", 1000)
	return dimension, scale, is
}

// power is base to the place of the prefix among the prefixes; an empty prefix is 1.
func power(prefix, prefixes string, base int64) (*big.Rat, bool) {
	if prefix == "" {
		return big.NewRat(1, 1), true
	}
	place := strings.Index(prefixes, prefix)
	if place < 0 || len(prefix) != 1 {
		return nil, false
	}
	scale := int64(1)
	for range place + 1 {
		scale *= base
	}
	return big.NewRat(scale, 1), true
}

// numberEnd is where the number at the begin of the text ends. An E without a digit begins a unit.
func numberEnd(text string) int {
	end := 0
	if strings.HasPrefix(text, "-") || strings.HasPrefix(text, "+") {
		end++
	}
	end += digits(text[end:])
	if strings.HasPrefix(text[end:], ".") {
		end++
		end += digits(text[end:])
	}
	exponent := text[end:]
	if strings.HasPrefix(exponent, "e") || strings.HasPrefix(exponent, "E") {
		sign := 1
		if len(exponent) > 1 && (exponent[1] == '-' || exponent[1] == '+') {
			sign++
		}
		if count := digits(exponent[sign:]); count > 0 {
			end += sign + count
		}
	}
	return end
}

// digits counts the digits at the begin of the text.
func digits(text string) int {
	return len(text) - len(strings.TrimLeft(text, "0123456789"))
}

// parseNumber reads a number. It refuses one whose exponent is out of bounds.
func parseNumber(text string) (*big.Rat, bool) {
	mantissa, exponent := text, ""
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		mantissa, exponent = text[:at], text[at+1:]
	}
	bare := strings.TrimLeft(mantissa, "+-")
	if whole, fraction, _ := strings.Cut(bare, "."); digits(whole)+digits(fraction) == 0 || digits(whole) != len(whole) ||
		digits(fraction) != len(fraction) || len(mantissa)-len(bare) > 1 {
		return nil, false
	}
	shift := 0
	if exponent != "" {
		var err error
		if shift, err = strconv.Atoi(exponent); err != nil || shift < -maxExponent || shift > maxExponent {
			return nil, false
		}
	}
	number, is := new(big.Rat).SetString(mantissa)
	if !is {
		return nil, false
	}
	ten := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(shift, -shift))), nil)
	if shift < 0 {
		return number.Quo(number, new(big.Rat).SetInt(ten)), true
	}
	return number.Mul(number, new(big.Rat).SetInt(ten)), true
}
