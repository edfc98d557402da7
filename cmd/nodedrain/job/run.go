package job

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/eval"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Run is "nodedrain job run".
func Run() *cli.Command {
	var f runFlags
	return &cli.Command{
		Short: "Register a job, or its next version",
		Description: `
  Registers the job in FILE, or its next version, and waits until the scheduler has
  evaluated it. FILE is JSON: a job, or an object with the job as "Job", as for the API.
  "-" means the standard input. The command cannot read HCL: "nomad job run -output"
  converts it to JSON. docs/operators.md has an example.
`,
		Exits: `
  0   The job is registered. Without -detach: every allocation is placed.
  1   The request failed.
  2   Some allocations cannot be placed. The command prints the reasons, and the servers
      place them when they can. Or slots of the job stay empty because too many
      allocations in a row failed. The command prints how to fill them.
`,
		Args: "FILE", Connects: true, Run: f.run,
		Options: cli.Options{
			cli.Flag(&f.check, "check-index N", `Register the job only if its modify index is N, see "job plan". Zero means that the job does not exist. It needs cluster version 4.`),
			cli.Flag(&f.counts, "preserve-counts", "Keep the counts of the registered job's groups."),
			cli.Flag(&f.resources, "preserve-resources", "Keep the resources of the registered job's tasks."),
			cli.Flag(&f.priority, "eval-priority N", "The priority of the evaluation, 1 to 100. Default: that of the job."),
			cli.Flag(&f.detach, "detach", "Do not wait for the scheduler."),
		},
	}
}

// runFlags are its flags.
type runFlags struct {
	detach    bool
	counts    bool
	resources bool
	// check is the JobModifyIndex that the registered job must have, or empty.
	check string
	// priority is that of the evaluation, or zero.
	priority int
}

func (f *runFlags) run(c *cli.Call) error {
	body, err := jobBody(c, c.Args[0])
	if err != nil {
		return err
	}
	if f.check != "" {
		if body, err = enforcing(body, f.check); err != nil {
			return err
		}
	}
	if f.priority != 0 {
		if body, err = with(body, map[string]json.RawMessage{"EvalPriority": strconv.AppendInt(nil, int64(f.priority), 10)}); err != nil {
			return err
		}
	}
	for key, is := range map[string]bool{"PreserveCounts": f.counts, "PreserveResources": f.resources} {
		if !is {
			continue
		}
		if body, err = with(body, map[string]json.RawMessage{key: json.RawMessage("true")}); err != nil {
			return err
		}
	}
	written, _, err := c.API.RegisterJob(c.Ctx, body)
	if err != nil {
		return cli.Errorf("Error submitting job: %v", err)
	}
	c.Warn(written.Warnings)
	fmt.Fprintf(c.Out, "Job registered: evaluation %s\n", written.EvalID)
	if f.detach || written.EvalID == "" {
		return nil
	}
	e, err := eval.Evaluated(c, written.EvalID, "The job is registered")
	if e == nil {
		return err
	}
	return cmp.Or(leftToDo(c, e), err)
}

// leftToDo prints the rollouts of an evaluated job, and its slots that the scheduler does not fill any more. The
// evaluation itself is complete then. The error is [exitNotPlaced] if there are such slots.
func leftToDo(c *cli.Call, e *wire.Evaluation) error {
	sum, _, err := c.API.JobSummary(c.Ctx, e.JobID, client.Query{Namespace: e.Namespace})
	if err != nil {
		return cli.Errorf("Error querying job: %v", err)
	}
	printRollouts(c.Out, sum, false)
	if len(sum.GivenUp) == 0 {
		return nil
	}
	printGivenUp(c.Out, sum, false)
	return eval.ExitNotPlaced
}

// enforcing adds the modify index that the registered job must have to a registration.
func enforcing(registration json.RawMessage, index string) (json.RawMessage, error) {
	number, err := strconv.ParseUint(index, 10, 64)
	if err != nil {
		return nil, cli.UsageError("job run", fmt.Sprintf("Error parsing check-index value %q: it must be a number of 0 or more", index))
	}
	return with(registration, map[string]json.RawMessage{
		"EnforceIndex": json.RawMessage("true"), "JobModifyIndex": strconv.AppendUint(nil, number, 10),
	})
}

// with sets members of a request. The rest stays as it is in the file, also what the servers warn of.
func with(request json.RawMessage, members map[string]json.RawMessage) (json.RawMessage, error) {
	var body map[string]json.RawMessage
	if err := json.Unmarshal(request, &body); err != nil {
		return nil, cli.Errorf("Error reading job: %v", err)
	}
	for key, value := range members {
		maps.DeleteFunc(body, func(other string, _ json.RawMessage) bool { return strings.EqualFold(key, other) })
		body[key] = value
	}
	return json.Marshal(body)
}

// hclRemedy returns how to convert a file that is no JSON and may be HCL, or empty.
func hclRemedy(text []byte, file string) string {
	if begin := bytes.TrimSpace(text); len(begin) == 0 || begin[0] == '{' || begin[0] == '[' {
		return ""
	}
	if file == "-" {
		file = "FILE"
	}
	return fmt.Sprintf(". If it is HCL, convert it first: nomad job run -output %s > job.json", file)
}

// jobBody reads the request from a file, or from the input.
func jobBody(c *cli.Call, file string) (json.RawMessage, error) {
	text, err := c.ReadFile(file)
	if err != nil {
		return nil, cli.Errorf("Error reading job: %v", err)
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(text, &keys); err != nil {
		return nil, cli.Errorf("Error reading job: %s is not a JSON object: %v%s", file, err, hclRemedy(text, file))
	}
	for key := range keys {
		if strings.EqualFold(key, "Job") {
			return bytes.TrimSpace(text), nil
		}
	}
	return json.Marshal(map[string]json.RawMessage{"Job": bytes.TrimSpace(text)})
}
