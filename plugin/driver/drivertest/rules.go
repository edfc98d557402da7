package drivertest

import (
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/plugin/conformance"
)

type rule = conformance.Checked[*check]

// rules returns the rules of the suite in the order of their numbers.
func rules() []rule { return slices.Concat(rulesOfRunning(), rulesOfEnding(), rulesOfDestruction()) }

// rulesOfRunning are D1 to D9: the driver itself, starts, and the generations of the driver.
func rulesOfRunning() []rule {
	return []rule{
		{Rule: conformance.Rule{
			ID: "D1", Doc: "The first fingerprint comes at once.",
			Contract: "Fingerprint sends the health at once, and again at each change.",
			Should:   true,
		}, Check: firstFingerprint},
		{Rule: conformance.Rule{
			ID: "D2", Doc: "When the context of Fingerprint ends, only the stream of fingerprints ends.",
			Contract: "Fingerprint sends until the host ends the stream. The host may end the stream and open a new one.",
		}, Check: cancelFingerprints},
		{Rule: conformance.Rule{
			ID: "D3", Doc: "The schema takes a good config, and names an unknown key and a missing required key.",
			Contract: "TaskConfigSchema has every key of a task's config, and says which are required.",
		}, Check: schema},
		{Rule: conformance.Rule{
			ID: "D4", Doc: "A task that was started runs.",
			Contract: "StartTask returns when the task runs. After a restart the driver needs only the handle to recover the task.",
		}, Check: started},
		{Rule: conformance.Rule{
			ID: "D4 output", Doc: "What a task writes reaches its log path.",
			Contract: "The output of a task goes to stdout_path and stderr_path, which are files or FIFOs.",
		}, Check: output},
		{Rule: conformance.Rule{
			ID: "D4 user", Doc: "A task of another user runs as this user, or the start fails.",
			Contract: "StartTask refuses a user that the driver cannot give. A task of another user never runs as the user of the driver.",
		}, Check: userOfTask},
		{Rule: conformance.Rule{
			ID: "D4 environment", Doc: "A task has no variables of the driver's process.",
			Contract: "The config of the task has its whole environment. The driver does not add its own variables.",
		}, Check: environment},
		{Rule: conformance.Rule{
			ID: "D5", Doc: "A second start with the same id fails, or starts no second process.",
			Contract: "A task id identifies one start and is never used again. StartTask refuses an id that it knows.",
			Should:   true,
		}, Check: startTwice},
		{Rule: conformance.Rule{
			ID: "D6", Doc: "A start that fails leaves nothing.",
			Contract: "After an error of StartTask the task has not been started, and the driver does not know it.",
		}, Check: failedStart},
		{Rule: conformance.Rule{
			ID: "D7", Doc: "Recover of a task that the driver knows succeeds and changes nothing.",
			Contract: "RecoverTask of a task that the driver knows succeeds and has no effect.",
		}, Check: recoverKnown},
		{Rule: conformance.Rule{
			ID: "D8", Doc: "Calls in flight end when the driver dies. The restarted driver recovers the task and stops it.",
			Contract: "A task continues to run when the driver's process ends. RecoverTask takes the task over from its handle. Then all calls work.",
		}, Check: relaunch},
		{Rule: conformance.Rule{
			ID: "D9", Doc: "If a task ended while the driver was down, Recover fails, or the result is true or unknown.",
			Contract: "A driver that lost the result of a task reports that. It never invents a result.",
		}, Check: endedMeanwhile},
	}
}

// rulesOfEnding are D10 to D15: results and stops.
func rulesOfEnding() []rule {
	return []rule{
		{Rule: conformance.Rule{
			ID: "D10", Doc: "Two calls of Wait for one task get the same result.",
			Contract: "WaitTask may be called several times at once. All callers get the same result.",
			Should:   true,
		}, Check: twoWaiters},
		{Rule: conformance.Rule{
			ID: "D11", Doc: "Wait returns the task's exit code. For a signal it returns the signal, and 128 plus its number as the code.",
			Contract: "The result has the exit code of the task. If a signal ended it, the result has the signal, and the code is 128 plus its number.",
		}, Check: exitCodes},
		{Rule: conformance.Rule{
			ID: "D12", Doc: "Wait answers at once, and again, after a task has ended by itself.",
			Contract: "WaitTask of a task that has ended answers at once with its result, until DestroyTask.",
		}, Check: waitAfterExit},
		{Rule: conformance.Rule{
			ID: "D12 stop", Doc: "Wait does not answer while a task that is being stopped still runs.",
			Contract: "WaitTask answers when the task has ended, also during StopTask. Some released drivers answer when StopTask begins, with code 0.",
			Should:   true,
		}, Check: waitDuringStop},
		{Rule: conformance.Rule{
			ID: "D13", Doc: "A task that ignores its signal is killed at the end of its timeout, not earlier.",
			Contract: "StopTask sends the signal, waits for the timeout, and then kills the task with SIGKILL: not earlier, and at most a second later.",
		}, Check: graceKept},
		{Rule: conformance.Rule{
			ID: "D13 orderly", Doc: "A task that obeys its signal ends with its own code, and Stop returns at once.",
			Contract: "StopTask returns when the task has ended. It does not wait for the rest of the timeout.",
		}, Check: orderlyStop},
		{Rule: conformance.Rule{
			ID: "D14", Doc: "Stop of a task that has ended succeeds and keeps the result.",
			Contract: "StopTask of a task that has ended succeeds. It cleans nothing up: InspectTask and WaitTask still have the result.",
		}, Check: stopEnded},
		{Rule: conformance.Rule{
			ID: "D15", Doc: "Stop sends the requested signal.",
			Contract: "StopTask sends the signal of the request. The empty signal is the driver's default.",
		}, Check: stopSignal},
		{Rule: conformance.Rule{
			ID: "D15 unknown", Doc: "Stop with an unknown signal fails, or ends the task. After an error the task runs.",
			Contract: "A call with an unknown signal returns an error and does not change the task. Some released drivers send their default signal.",
		}, Check: unknownSignal},
	}
}

// rulesOfDestruction are D16 to D20: the end of a task, and what the driver knows of it.
func rulesOfDestruction() []rule {
	return []rule{
		{Rule: conformance.Rule{
			ID: "D16", Doc: "Destroy without force refuses a running task and does not touch it.",
			Contract: "DestroyTask without force is an error for a task that runs, and has no effect on it.",
			Should:   true,
		}, Check: destroyRefused},
		{Rule: conformance.Rule{
			ID: "D17", Doc: "Destroy with force kills the task, and Wait has an answer. It removes a task that has ended.",
			Contract: "DestroyTask with force succeeds: it kills a task that runs, and removes one that has ended. Calls of WaitTask end.",
		}, Check: destroyForced},
		{Rule: conformance.Rule{
			ID: "D17 children", Doc: "Destroy with force kills children in other sessions.",
			Contract: "A kill reaches all processes of the task, also processes that started a new session.",
		}, Check: destroyChildren},
		{Rule: conformance.Rule{
			ID: "D18", Doc: "After Destroy the driver does not know the task.",
			Contract: "After DestroyTask all calls for the task answer that it is not found, except DestroyTask, which may succeed.",
			Should:   true,
		}, Check: destroyed},
		{Rule: conformance.Rule{
			ID: "D19", Doc: "Inspect has the state of the task, and its result at the end.",
			Contract: "InspectTask has the id, the name and the state of the task, and its result when it has ended.",
		}, Check: inspect},
		{Rule: conformance.Rule{
			ID: "D20", Doc: "An unsupported call is an error. A supported call works.",
			Contract: "Capabilities are true. A call that the driver does not support returns an error, and the driver continues to work.",
		}, Check: optionalCalls},
		{Rule: conformance.Rule{
			ID: "D20 stats", Doc: "Stats reports the usage of a task that runs, or ends.",
			Contract: "TaskStats reports once in each interval until the task ends. A driver that does not measure returns an error.",
			Should:   true,
		}, Check: usage},
	}
}
