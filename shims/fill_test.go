package shims_test

import (
	"fmt"
	"reflect"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// filler sets every field under a value to a unique value (as far as the type has enough values),
// so that a lost or swapped field is visible.
type filler struct{ next int }

func (f *filler) fill(v reflect.Value) {
	f.next++
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(f.next % 127))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(f.next % 127))
	case reflect.Float64:
		v.SetFloat(float64(f.next) + 0.5)
	case reflect.String:
		v.SetString(fmt.Sprintf("text %d", f.next))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		f.fill(v.Index(0))
		f.fill(v.Index(1))
	case reflect.Array:
		for i := range v.Len() {
			f.fill(v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 2 {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			f.fill(key)
			f.fill(value)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(1893456000+int64(f.next), int64(f.next)*1001).UTC()))
			return
		}
		for i := range v.NumField() {
			f.fill(v.Field(i))
		}
	default:
		panic("nothing to fill a " + v.Type().String() + " with")
	}
}

// emptyMessages returns one empty message of each type.
func emptyMessages() []shims.Message {
	return []shims.Message{
		new(shims.NodeRegister), new(shims.NodeDeregister), new(shims.NodeUpdateStatus), new(shims.NodeUpdateEligibility),
		new(shims.NodeUpdateDrain), new(shims.JobRegister), new(shims.JobDeregister), new(shims.EvalUpdate),
		new(shims.AllocClientUpdate), new(shims.ApplyPlan), new(shims.AllocUpdateDesiredTransition), new(shims.NodesDrainComplete),
		new(shims.RaiseClusterVersion), new(shims.Collect), new(shims.AllocStop), new(shims.ConfirmStops), new(shims.ConfirmDrain), new(shims.PauseDrains), new(shims.NodeAppendEvent),
		new(shims.VolumeRegister), new(shims.VolumeDeregister), new(shims.VolumeDetach), new(shims.ClaimUpdate),
	}
}

// fullMessages returns one message of each type with all its possible fields set.
func fullMessages() []shims.Message {
	messages := emptyMessages()
	for _, m := range messages {
		new(filler).fill(reflect.ValueOf(m).Elem())
		switch m := m.(type) {
		case *shims.NodeRegister:
			m.Node.Drain = nil // a registration cannot carry a drain
		case *shims.RaiseClusterVersion:
			m.Version = 2 // this build cannot encode a newer version
		}
	}
	return messages
}
