package schema

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hcldec"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/seed-f9cf0b39/nodedrain/plugin/proto/hclspec"
)

// Schema describes a config. It is safe for concurrent use.
type Schema struct{ spec hcldec.Spec }

// New returns the schema of a plugin. Nil and the empty schema have no keys. An error names the key
// and means that the plugin is wrong.
func New(spec *hclspec.Spec) (_ *Schema, err error) {
	// hcldec panics on some invalid schemas that it does not check.
	defer guard(&err)
	if spec.GetBlock() == nil {
		return &Schema{hcldec.ObjectSpec{}}, nil
	}
	converted, err := convertSpec("", spec)
	if err != nil {
		return nil, fmt.Errorf("the schema: %w", err)
	}
	hcldec.ImpliedType(converted)
	return &Schema{converted}, nil
}

// guard converts a panic to an error.
func guard(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the schema contradicts itself: %v", p)
	}
}

// convertSpec converts a part of a schema. key is the name of a part without a name.
func convertSpec(key string, spec *hclspec.Spec) (hcldec.Spec, error) {
	converted, err := convertBlock(key, spec)
	if err != nil && key != "" {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return converted, err
}

func convertBlock(key string, spec *hclspec.Spec) (hcldec.Spec, error) {
	switch b := spec.GetBlock().(type) {
	case *hclspec.Spec_Object:
		return convertObject(b.Object)
	case *hclspec.Spec_Array:
		return convertArray(b.Array)
	case *hclspec.Spec_Attr:
		name, err := named(b.Attr.GetName(), key)
		if err != nil {
			return nil, err
		}
		kind, err := parseType(b.Attr.GetType())
		return &hcldec.AttrSpec{Name: name, Type: kind, Required: b.Attr.GetRequired()}, err
	case *hclspec.Spec_Default:
		return convertDefault(key, b.Default)
	case *hclspec.Spec_Literal:
		return literal(b.Literal.GetValue())
	case nil:
		return nil, errors.New("a part of it is empty")
	}
	return convertNested(key, spec)
}

// convertNested converts the parts that are blocks.
func convertNested(key string, spec *hclspec.Spec) (hcldec.Spec, error) {
	switch b := spec.GetBlock().(type) {
	case *hclspec.Spec_BlockValue:
		name, nested, err := block(key, b.BlockValue)
		return &hcldec.BlockSpec{TypeName: name, Nested: nested, Required: b.BlockValue.GetRequired()}, err
	case *hclspec.Spec_BlockAttrs:
		name, err := named(b.BlockAttrs.GetName(), key)
		if err != nil {
			return nil, err
		}
		kind, err := parseType(b.BlockAttrs.GetType())
		return &hcldec.BlockAttrsSpec{TypeName: name, ElementType: kind, Required: b.BlockAttrs.GetRequired()}, err
	case *hclspec.Spec_BlockList:
		name, nested, err := block(key, b.BlockList)
		return &hcldec.BlockListSpec{TypeName: name, Nested: nested, MinItems: count(b.BlockList.GetMin()), MaxItems: count(b.BlockList.GetMax())}, err
	case *hclspec.Spec_BlockSet:
		name, nested, err := block(key, b.BlockSet)
		return &hcldec.BlockSetSpec{TypeName: name, Nested: nested, MinItems: count(b.BlockSet.GetMin()), MaxItems: count(b.BlockSet.GetMax())}, err
	case *hclspec.Spec_BlockMap:
		name, nested, err := block(key, b.BlockMap)
		if err == nil && len(b.BlockMap.GetLabels()) == 0 {
			err = errors.New("a map of blocks has no labels")
		}
		if err == nil && hcldec.ImpliedType(nested).HasDynamicTypes() {
			err = errors.New("a map of blocks has values of any type")
		}
		return &hcldec.BlockMapSpec{TypeName: name, Nested: nested, LabelNames: b.BlockMap.GetLabels()}, err
	}
	return nil, fmt.Errorf("the part %T is unknown", spec.GetBlock())
}

// count converts a number of items.
func count(n uint64) int { return int(min(n, math.MaxInt32)) }

func named(name, key string) (string, error) {
	switch {
	case name != "":
		return name, nil
	case key != "":
		return key, nil
	}
	return "", errors.New("a part of it has no name")
}

// block converts the name of a block and what is in it.
func block(key string, b interface {
	GetName() string
	GetNested() *hclspec.Spec
}) (string, hcldec.Spec, error) {
	name, err := named(b.GetName(), key)
	if err != nil {
		return "", nil, err
	}
	nested, err := convertSpec("", b.GetNested())
	return name, nested, err
}

func convertObject(object *hclspec.Object) (hcldec.Spec, error) {
	converted := hcldec.ObjectSpec{}
	for _, key := range slices.Sorted(maps.Keys(object.GetAttributes())) {
		spec, err := convertSpec(key, object.GetAttributes()[key])
		if err != nil {
			return nil, err
		}
		converted[key] = spec
	}
	return converted, nil
}

func convertArray(array *hclspec.Array) (hcldec.Spec, error) {
	var converted hcldec.TupleSpec
	for _, value := range array.GetValues() {
		spec, err := convertSpec("", value)
		if err != nil {
			return nil, err
		}
		converted = append(converted, spec)
	}
	return converted, nil
}

// convertDefault converts a literal default to the type of its value. Attributes that are missing in
// the objects of a default are null: schemas of released plugins omit them, and their plugins then
// use the zero value.
func convertDefault(key string, d *hclspec.Default) (hcldec.Spec, error) {
	primary, err := convertSpec(key, d.GetPrimary())
	if err != nil {
		return nil, err
	}
	fallback, err := convertSpec(key, d.GetDefault())
	if err != nil {
		return nil, err
	}
	if fixed, ok := fallback.(*hcldec.LiteralSpec); ok {
		if fixed.Value, err = convert.Convert(fixed.Value, withOptional(hcldec.ImpliedType(primary))); err != nil {
			return nil, fmt.Errorf("the default: %w", err)
		}
	}
	return &hcldec.DefaultSpec{Primary: primary, Default: fallback}, nil
}

// withOptional returns the type with all attributes of its objects optional, at every level.
func withOptional(t cty.Type) cty.Type {
	switch {
	case t.IsObjectType():
		attributes := make(map[string]cty.Type)
		for name, attribute := range t.AttributeTypes() {
			attributes[name] = withOptional(attribute)
		}
		return cty.ObjectWithOptionalAttrs(attributes, slices.Collect(maps.Keys(attributes)))
	case t.IsListType():
		return cty.List(withOptional(t.ElementType()))
	case t.IsSetType():
		return cty.Set(withOptional(t.ElementType()))
	case t.IsMapType():
		return cty.Map(withOptional(t.ElementType()))
	case t.IsTupleType():
		var elements []cty.Type
		for _, element := range t.TupleElementTypes() {
			elements = append(elements, withOptional(element))
		}
		return cty.Tuple(elements)
	}
	return t
}

// maxExpression is the longest expression in bytes. The parser needs stack for each level.
const maxExpression = 64 << 10

// parse reads an expression of a schema.
func parse(text string) (hclsyntax.Expression, error) {
	if len(text) > maxExpression {
		return nil, fmt.Errorf("it has %d bytes, and may have %d", len(text), maxExpression)
	}
	expression, diags := hclsyntax.ParseExpression([]byte(text), "expression", hcl.InitialPos)
	if diags.HasErrors() {
		return nil, asError(diags)
	}
	return expression, nil
}

// parseType reads a type expression, such as list(string).
func parseType(text string) (cty.Type, error) {
	expression, err := parse(text)
	if err != nil {
		return cty.NilType, fmt.Errorf("the type %.40q: %w", text, err)
	}
	kind, diags := typeexpr.TypeConstraint(expression)
	if diags.HasErrors() {
		return cty.NilType, fmt.Errorf("the type %.40q: %w", text, asError(diags))
	}
	return kind, nil
}

// literal evaluates an expression without variables.
func literal(text string) (hcldec.Spec, error) {
	expression, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("the literal %.40q: %w", text, err)
	}
	value, diags := expression.Value(&hcl.EvalContext{Functions: functions()})
	if diags.HasErrors() {
		return nil, fmt.Errorf("the literal %.40q: %w", text, asError(diags))
	}
	if !value.IsWhollyKnown() {
		return nil, fmt.Errorf("the literal %.40q has no known value", text)
	}
	return &hcldec.LiteralSpec{Value: value}, nil
}

// asError returns all errors of diagnostics. It omits positions, because the text is not a file of
// the user.
func asError(diags hcl.Diagnostics) error {
	var errs []error
	repeated := map[string]bool{}
	for _, d := range diags {
		if text := d.Summary + ": " + d.Detail; d.Severity == hcl.DiagError && !repeated[text] {
			repeated[text] = true
			errs = append(errs, errors.New(text))
		}
	}
	return errors.Join(errs...)
}
