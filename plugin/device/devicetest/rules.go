package devicetest

import "github.com/seed-f9cf0b39/nodedrain/plugin/conformance"

type rule = conformance.Checked[*check]

// rules returns the rules of the suite in the order of their numbers.
func rules() []rule {
	return []rule{
		{Rule: conformance.Rule{
			ID: "V1", Doc: "The first fingerprint comes at once.",
			Contract: "Fingerprint sends all devices at once, and again at each change.",
			Should:   true,
		}, Check: firstFingerprint},
		{Rule: conformance.Rule{
			ID: "V1 empty", Doc: "A plugin without a device reports an empty list at once.",
			Contract: "An empty list is a fingerprint. Without it the client waits for the plugin.",
			Should:   true,
		}, Check: emptyList},
		{Rule: conformance.Rule{
			ID: "V1 change", Doc: "A change of the devices is reported.",
			Contract: "Fingerprint sends all devices again at each change: a device was added, was removed, or has a different health.",
		}, Check: change},
		{Rule: conformance.Rule{
			ID: "V1 cancel", Doc: "When the context of Fingerprint ends, only the stream of fingerprints ends.",
			Contract: "Fingerprint sends until the host ends the stream. The host may end the stream and open a new one.",
			Should:   true,
		}, Check: cancelFingerprints},
		{Rule: conformance.Rule{
			ID: "V1 ids", Doc: "Kinds are complete, and each device has a different id.",
			Contract: "A group has a vendor, a type and a name. An id identifies one device of its kind, and is not empty.",
		}, Check: goodGroups},
		{Rule: conformance.Rule{
			ID: "V3", Doc: "A plugin that was killed and restarted reports the same devices.",
			Contract: "The id of a device is the same after each restart of the plugin. A task keeps its device while the plugin is down.",
		}, Check: relaunch},
		{Rule: conformance.Rule{
			ID: "V3 change", Doc: "After a change of the devices and a restart, no id means another device.",
			Contract: "An id means one device. It does not depend on the other devices or on their order.",
		}, Check: sameMeaning},
		{Rule: conformance.Rule{
			ID: "V6", Doc: "What a task needs for a device is valid.",
			Contract: "Paths are absolute, permissions are letters of rwm, and the names of variables are valid.",
		}, Check: validReservation},
		{Rule: conformance.Rule{
			ID: "V6 something", Doc: "A task gets something for each healthy device.",
			Contract: "Reserve returns variables, mounts or device files, so that the task can use its device.",
			Should:   true,
		}, Check: givesSomething},
		{Rule: conformance.Rule{
			ID: "V7", Doc: "Reserve of an unknown id is an error, and the plugin continues to work.",
			Contract: "Reserve refuses an id that the plugin does not know: the start of the task fails and may be repeated.",
		}, Check: unknownID},
		{Rule: conformance.Rule{
			ID: "V7 none", Doc: "Reserve without ids is no error and returns nothing.",
			Contract: "Without ids there is nothing to prepare.",
			Should:   true,
		}, Check: reserveNothing},
		{Rule: conformance.Rule{
			ID: "V7 others", Doc: "The answer of Reserve contains only the requested devices.",
			Contract: "A task gets the devices of the request and no others. The client cannot see which devices an answer is for.",
		}, Check: onlyTheReserved},
		{Rule: conformance.Rule{
			ID: "V7 alone", Doc: "The answers for two devices are not one answer that names all devices.",
			Contract: "A task gets the devices of the request and no others, also if their ids are short.",
		}, Check: oneEach},
		{Rule: conformance.Rule{
			ID: "V7 repeat", Doc: "Reserve of the same ids always returns the same answer.",
			Contract: "The protocol has no call to release a device, so Reserve succeeds again. Only the client knows the owner of a device.",
		}, Check: reserveAgain},
		{Rule: conformance.Rule{
			ID: "V7 several", Doc: "Reserve accepts all ids of a kind in one call, and one task can use the answer.",
			Contract: "A request has any number of ids of one kind. No two mounts or device files of an answer have the same path.",
		}, Check: reserveSeveral},
		{Rule: conformance.Rule{
			ID: "V8", Doc: "Stats sends values of known devices in each interval, or the plugin does not support it.",
			Contract: "Stats sends values at once and in each interval until the host ends the stream. A plugin that does not measure answers Unimplemented.",
			Should:   true,
		}, Check: statistics},
		{Rule: conformance.Rule{
			ID: "V9", Doc: "A wrong config of the plugin is refused.",
			Contract: "SetConfig answers an error for a config that the plugin cannot use, and says why.",
			Should:   true,
		}, Check: wrongConfig},
	}
}
