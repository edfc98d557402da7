package cli

import (
	"testing"

	"github.com/shoenig/test/must"
)

func TestEvenDigits(t *testing.T) {
	t.Parallel()
	for prefix, want := range map[string]string{
		"7c": "7c", "7c6": "7c", "7c6b3110-": "7c6b3110-", "7c6b3110-d": "7c6b3110-", "7c6b3110-d0": "7c6b3110-d0",
		"7c6b3110-d0f8-951f-b791-e76fce97e405": "7c6b3110-d0f8-951f-b791-e76fce97e405",
	} {
		must.Eq(t, want, evenDigits(prefix))
	}
}
