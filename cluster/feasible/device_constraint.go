package feasible

import (
	"strconv"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/quantity"
)

// holdsOn reports whether a constraint on devices holds for all devices of the group, or for one of them.
//
// A text of the constraint is read as the kind of the value on its other side: a quantity, true or false,
// or a text. Quantities are equal and ordered by their values, if their units measure the same. Other
// values of different kinds are not equal and not ordered. Operands other than = and the orders read all
// values as texts. The lists of set_contains and set_contains_any name ids if the other side is
// ${device.ids}: the constraint holds for each device that is in the list.
func (c *constraint) holdsOn(g *cluster.DeviceGroup, d *cluster.Device) bool {
	left, isLeft := valueOf(g, d, c.LTarget)
	switch c.Operand {
	case cluster.OperandIsSet:
		return isLeft
	case cluster.OperandIsNotSet:
		return !isLeft
	}
	right, isRight := valueOf(g, d, c.RTarget)
	if !isLeft || !isRight {
		return c.Operand == cluster.OperandNotEqual && isLeft != isRight
	}
	switch c.Operand {
	case "", cluster.OperandEqual:
		return left.equals(right)
	case cluster.OperandNotEqual:
		return !left.equals(right)
	case cluster.OperandSetContains, cluster.OperandSetContainsAny:
		if c.LTarget == cluster.TargetDeviceIDs {
			return contained(right.text, left.text) > 0
		}
	case cluster.OperandLess, cluster.OperandLessOrEqual, cluster.OperandGreater, cluster.OperandGreaterOrEqual:
		order, comparable := left.order(right)
		return comparable && ordered(c.Operand, order)
	}
	return c.compare(left.text, right.text)
}

// ordered reports whether the operand accepts the order of two values.
func ordered(operand string, order int) bool {
	switch operand {
	case cluster.OperandLess:
		return order < 0
	case cluster.OperandLessOrEqual:
		return order <= 0
	case cluster.OperandGreater:
		return order > 0
	}
	return order >= 0
}

// value is a fact about devices, or a text of a constraint.
type value struct {
	text string
	// literal means that the text is the constraint's, and has no kind.
	literal bool
	kind    valueKind
	// number is that of a quantity.
	number quantity.Quantity
}

type valueKind uint8

const (
	isText valueKind = iota
	isQuantity
	isBool
)

// valueOf returns the value of a target, and false for a fact that is not set. The device is nil for a
// constraint that speaks of all devices of the group.
func valueOf(g *cluster.DeviceGroup, d *cluster.Device, target string) (v value, set bool) {
	name, is := cluster.Target(target)
	if !is {
		return value{text: target, literal: true}, true
	}
	switch name {
	case "device.ids":
		if d == nil {
			return value{}, false
		}
		return value{text: d.ID}, true
	case "device.vendor":
		return value{text: g.Kind.Vendor}, true
	case "device.type":
		return value{text: g.Kind.Type}, true
	case "device.model":
		return value{text: g.Kind.Name}, true
	}
	attribute, is := strings.CutPrefix(name, "device.attr.")
	a, set := g.Attributes[attribute]
	if !is || !set {
		return value{}, false
	}
	return ofAttribute(a), true
}

// ofAttribute returns the value of an attribute. A number with an unknown unit is a text.
func ofAttribute(a cluster.DeviceAttribute) value {
	v := value{text: a.String()}
	known := false
	switch a.Kind {
	case cluster.AttributeBool:
		v.kind = isBool
	case cluster.AttributeInt:
		v.number, known = quantity.Int(a.Int, a.Unit)
	case cluster.AttributeFloat:
		v.number, known = quantity.Float(a.Float, a.Unit)
	}
	if known {
		v.kind = isQuantity
	}
	return v
}

// as returns the value, read as the kind if it is a text of the constraint, and whether it is of the kind.
func (v value) as(kind valueKind) (value, bool) {
	if !v.literal {
		return v, v.kind == kind
	}
	is := true
	switch kind {
	case isQuantity:
		v.number, is = quantity.Parse(v.text)
	case isBool:
		var yes bool
		var err error
		if yes, err = strconv.ParseBool(strings.TrimSpace(v.text)); err == nil {
			v.text = strconv.FormatBool(yes)
		}
		is = err == nil
	}
	v.kind = kind
	return v, is
}

// alike returns both values as the same kind, or false.
func alike(a, b value) (x, y value, same bool) {
	if a.literal && b.literal {
		x, isX := a.as(isQuantity)
		y, isY := b.as(isQuantity)
		if isX && isY {
			return x, y, true
		}
		return a, b, true
	}
	kind := a.kind
	if a.literal {
		kind = b.kind
	}
	x, isX := a.as(kind)
	y, isY := b.as(kind)
	return x, y, isX && isY
}

func (v value) equals(o value) bool {
	a, b, is := alike(v, o)
	if !is {
		return false
	}
	if a.kind != isQuantity {
		return a.text == b.text
	}
	order, comparable := a.number.Order(b.number)
	return comparable && order == 0
}

// order orders quantities by value. Texts that are both quantities are ordered so too, other texts by their
// bytes. True and false have no order.
func (v value) order(o value) (order int, comparable bool) {
	a, b, is := alike(v, o)
	switch {
	case !is || a.kind == isBool:
		return 0, false
	case a.kind == isQuantity:
		return a.number.Order(b.number)
	}
	x, isX := quantity.Parse(a.text)
	y, isY := quantity.Parse(b.text)
	if isX && isY {
		return x.Order(y)
	}
	return strings.Compare(a.text, b.text), true
}
