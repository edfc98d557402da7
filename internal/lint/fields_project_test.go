package lint_test

import (
	"slices"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/drainer/drainertest"
	"github.com/seed-f9cf0b39/nodedrain/internal/lint"
)

// decisionRoots are the functions that decide from a view, and the view that package rowview builds.
func decisionRoots() []lint.Root {
	const rules, drainer = module + "/drainer/rules", module + "/drainer"
	return []lint.Root{
		{Package: rules, Name: "Recheck"},
		{Package: rules, Name: "RecheckCompletions"},
		{Package: rules, Receiver: "Planner", Name: "PlanGroup"},
		{Package: rules, Receiver: "Planner", Name: "PlanNode"},
		{Package: rules, Name: "Explain"},
		{Package: rules, Receiver: "Explainer", Name: "Report"},
		{Package: drainer, Receiver: "Term", Name: "Step"},
		{Package: drainer, Receiver: "Term", Name: "Explain"},
		{Package: drainer, Receiver: "Term", Name: "Status"},
		{Package: drainer + "/rowview", Name: "New"},
	}
}

// drainertest.TestStore compares exactly the fields that decisions read.
func TestProject_decisionFields(t *testing.T) {
	t.Parallel()
	var packages []string
	for _, name := range []string{"cluster", "cluster/alarm", "cluster/inbox", "cluster/raftwrite", "drainer", "drainer/rules", "drainer/rowview"} {
		packages = append(packages, module+"/"+name)
	}
	m, err := lint.Load(root(), packages...)
	must.NoError(t, err)
	read, err := lint.ReadFields(m, module+"/cluster", []string{"Node", "Job", "Allocation", "Evaluation"}, decisionRoots())
	must.NoError(t, err)
	compared := drainertest.DecisionFields()
	// A store of a cluster without volumes need not keep these: drainertest.TestVolumes compares them.
	ofVolumes := []string{"Task.CSIPlugin", "CSIPlugin.ID", "CSIPlugin.Type"}
	// Only a message reads these, of the log or of a report, and it has words for a row without them.
	ofMessages := []string{"Node.LastDrain", "DrainMetadata.Status", "DeploymentStatus.Timestamp"}
	for _, f := range read {
		if !slices.Contains(compared, f) && !slices.Contains(ofVolumes, f) && !slices.Contains(ofMessages, f) {
			t.Errorf("decisions read %s, and drainertest.TestStore neither sets nor compares it: add it to decisionFieldsOf and to the generator", f)
		}
	}
	unread := map[string]string{"Drain.PurgedRunning": "the record of the drain shows it"}
	for _, f := range compared {
		if !slices.Contains(read, f) && unread[f] == "" {
			t.Errorf("drainertest.TestStore compares %s, and no decision reads it", f)
		}
	}
}
