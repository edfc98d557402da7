package scenario

import "reflect"

// Copy returns a deep copy.
func (s *Scenario) Copy() *Scenario { return deepCopy(s) }

// deepCopy returns a copy that shares nothing with the value. All fields of scenarios are exported.
func deepCopy[T any](of T) (c T) {
	copyValue(reflect.ValueOf(&c).Elem(), reflect.ValueOf(&of).Elem())
	return c
}

func copyValue(to, from reflect.Value) {
	switch from.Kind() {
	case reflect.Pointer:
		if !from.IsNil() {
			to.Set(reflect.New(from.Type().Elem()))
			copyValue(to.Elem(), from.Elem())
		}
	case reflect.Interface: // an Op, which is a pointer
		if !from.IsNil() {
			c := reflect.New(from.Elem().Type()).Elem()
			copyValue(c, from.Elem())
			to.Set(c)
		}
	case reflect.Slice:
		if !from.IsNil() {
			to.Set(reflect.MakeSlice(from.Type(), from.Len(), from.Len()))
			for i := range from.Len() {
				copyValue(to.Index(i), from.Index(i))
			}
		}
	case reflect.Struct:
		for i := range from.NumField() {
			copyValue(to.Field(i), from.Field(i))
		}
	default:
		to.Set(from)
	}
}
