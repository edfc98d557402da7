package storagetest

import "github.com/seed-f9cf0b39/nodedrain/plugin/conformance"

type rule = conformance.Checked[*check]

// rules returns the rules of the suite in the order of their numbers.
func rules() []rule {
	return []rule{
		{Rule: conformance.Rule{
			ID: "S1", Doc: "The plugin is ready and describes itself.",
			Contract: "The plugin answers Probe at once and has a name.",
		}, Check: describes},
		{Rule: conformance.Rule{
			ID: "S2", Doc: "A volume is mounted, used and unmounted.",
			Contract: "Stage, publish, unpublish and unstage succeed in this order. A target is mounted in between and not afterwards.",
		}, Check: inOrder},
		{Rule: conformance.Rule{
			ID: "S3", Doc: "Each call can be repeated.",
			Contract: "A call succeeds and changes nothing if its effect already exists.",
		}, Check: again},
		{Rule: conformance.Rule{
			ID: "S3 undo", Doc: "Unpublish and unstage succeed if nothing was published or staged.",
			Contract: "Unpublish and unstage succeed if there is nothing to undo: after a crash the client may not know which calls took effect.",
		}, Check: undoNothing},
		{Rule: conformance.Rule{
			ID: "S4", Doc: "A publish before the stage is refused.",
			Contract: "A plugin that stages refuses a publish without a stage, and the error names the missing stage. Stage and publish succeed afterwards.",
			Should:   true,
		}, Check: publishBeforeStage},
		{Rule: conformance.Rule{
			ID: "S5", Doc: "A volume that does not exist is not mounted.",
			Contract: "Stage and publish of an unknown volume fail. Unpublish and unstage of it succeed.",
		}, Check: unknownVolume},
		{Rule: conformance.Rule{
			ID: "S6", Doc: "A busy mount stays until it is free.",
			Contract: "Unpublish of a busy target fails and leaves it mounted. It succeeds when the target is free.",
		}, Check: busyMount},
		{Rule: conformance.Rule{
			ID: "S7", Doc: "A volume has two targets.",
			Contract: "A volume is staged once and published for each allocation. Unpublish of one target leaves the other.",
		}, Check: twoTargets},
		{Rule: conformance.Rule{
			ID: "S7 read only", Doc: "A volume that is mounted read only cannot be written to.",
			Contract: "If a publish is read only, tasks cannot write to the target.",
		}, Check: readOnly},
		{Rule: conformance.Rule{
			ID: "S8", Doc: "The plugin restarts between all calls.",
			Contract: "Mounts stay when the plugin ends. The next process continues from the mounts.",
		}, Check: restarts},
		{Rule: conformance.Rule{
			ID: "S9", Doc: "Two calls for one volume at the same time do no harm.",
			Contract: "Each of them succeeds, or fails and can be repeated: an earlier client may have left a call in flight.",
		}, Check: atTheSameTime},
	}
}
