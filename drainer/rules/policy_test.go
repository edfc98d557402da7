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
		{Policy{HealthGrace: -1}, "Policy.HealthGrace is -1ns and must be >= 0"},
		{Policy{StopMargin: -1}, "Policy.StopMargin is -1ns and must be >= 0"},
		{Policy{BelowBudget: BelowBudgetProceed + 1}, "Policy.BelowBudget is 2, which is no policy"},
		{Policy{PluginsAfterDeadline: PluginsAfterStop + 1}, "Policy.PluginsAfterDeadline is 2, which is no order"},
		{Policy{Completion: CompletionMarked + 1}, "Policy.Completion is 4, which is no completion policy"},
	} {
		must.EqError(t, test.policy.Validate(), test.want)
	}
	must.NoError(t, Policy{}.Validate())
	must.Eq(t, Policy{HealthGrace: 10 * time.Second, StopMargin: 15 * time.Second}, Policy{}.WithDefaults())
	chosen := Policy{1, 2, BelowBudgetProceed, PluginsAfterStop, CompletionMarked}
	must.NoError(t, chosen.Validate())
	must.Eq(t, chosen, chosen.WithDefaults())
	must.Eq(t, []string{"stopped", "replaced", "migrated", "asked", "unknown completion policy"},
		[]string{CompletionStopped.String(), CompletionReplaced.String(), CompletionMigrated.String(), CompletionMarked.String(), CompletionPolicy(9).String()})
}
