package scenario

import (
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/drainer"
)

// knobs are the values of a drainer's configuration.
func knobs(c *drainer.NodeDrainerConfig) (fields []field) {
	for _, k := range c.Knobs() {
		fields = append(fields, field{
			name: k.Name,
			set: func(v string) error {
				if err := k.Value.Set(v); err != nil {
					return err
				}
				if k.Value.IsZero() && v != k.Value.Default() {
					return fmt.Errorf("%q: leave it out for the default", v)
				}
				return nil
			},
			text: func() string {
				if k.Value.IsZero() {
					return ""
				}
				return k.Value.String()
			},
		})
	}
	return fields
}
