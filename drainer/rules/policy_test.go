package rules

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"
)

// Validate refuses a policy that cannot work, and names the field. Zero values of an entry's policy
// are its defaults.
func TestPolicy(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		policy Policy
		want   string
	}{
		{Policy{HealthGrace: -1}, "Policy.HealthGrace must be >= 0"},
		{Policy{StopMargin: -1}, "Policy.StopMargin must be >= 0"},
		{Policy{BelowBudget: BelowBudgetProceed + 1}, "Policy.BelowBudget must be hold or proceed"},
		{Policy{PluginsAfterDeadline: PluginsAfterStop + 1}, "Policy.PluginsAfterDeadline must be after-wait or after-stop"},
		{Policy{Completion: CompletionMarked + 1}, "Policy.Completion must be stopped, replaced, migrated or marked"},
	} {
		must.EqError(t, test.policy.Validate(), test.want)
	}
	must.NoError(t, Policy{}.Validate())
	must.Eq(t, Policy{HealthGrace: 10 * time.Second, StopMargin: 15 * time.Second}, Policy{}.WithDefaults())
	chosen := Policy{1, 2, BelowBudgetProceed, PluginsAfterStop, CompletionMarked}
	must.NoError(t, chosen.Validate())
	must.Eq(t, chosen, chosen.WithDefaults())
	must.Eq(t, []string{"stopped", "replaced", "migrated", "marked", "9"},
		[]string{CompletionStopped.String(), CompletionReplaced.String(), CompletionMigrated.String(), CompletionMarked.String(), CompletionPolicy(9).String()})
}
