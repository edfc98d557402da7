package server

import (
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/server/agent/datadir"
)

// Recover is "nodedrain server recover".
func Recover() *cli.Command {
	var f recoverFlags
	return &cli.Command{
		Short: "Recover a server that has lost data, offline",
		Forms: []string{"-data-dir DIR -discard [-yes]", "-data-dir DIR -alone [-yes]"},
		Description: `
  Changes the data directory of a server that does not run. It contacts no other server.
  First copy the directory.

  -discard is for a server that has lost a part of its data, while a majority of the other
  servers runs. It moves the data into DIR/discarded-TIME and deletes nothing. After that
  the directory belongs to a new server. Remove the old server from the cluster, and start
  the new one under another name and at another address, to join. The new server gets the
  whole state from the others.

  -alone is for the only server left, if the others will never run again. It makes this
  server the only member of a new cluster, with the state that it has. Every entry of its
  log takes effect, also an entry that was never acknowledged. Writes that only the other
  servers had are lost. The command refuses a damaged log, and it refuses while another
  server accepts connections. It accepts a log that is an older copy, and prints what is
  lost. Never start one of the other servers with its data afterwards: it could overwrite
  this one. Clients that run tasks of the old cluster ignore the new one until these tasks
  have ended: the command prints what remains to do.
`,
		Run: f.run,
		Options: cli.Options{
			cli.Flag(&f.dataDir, "data-dir DIR", "Data directory of the server."),
			cli.Flag(&f.discard, "discard", "Move the data aside, to join again as a new member."),
			cli.Flag(&f.alone, "alone", "Continue alone, with the state of this server."),
			cli.Flag(&f.yes, "yes", "Skip the confirmation."),
		},
	}
}

// recoverFlags are its flags.
type recoverFlags struct {
	dataDir             string
	discard, alone, yes bool
}

func (f *recoverFlags) run(c *cli.Call) error {
	switch {
	case f.dataDir == "":
		return c.UsageError("-data-dir is required")
	case f.discard == f.alone:
		return c.UsageError("Exactly one of -discard and -alone is required")
	}
	question := "Make this server the only member of a new cluster? Writes that only other servers have are lost. [y/N]"
	if f.discard {
		question = "Move aside all data of this server? [y/N]"
	} else {
		fmt.Fprintln(c.Out, aloneWarning)
	}
	if !f.yes {
		if err := c.Confirm(question, "Cancelling recovery"); err != nil {
			return err
		}
	}
	if f.discard {
		return discard(&c.Base, f.dataDir)
	}
	return alone(&c.Base, f.dataDir)
}

// aloneWarning is what clients do when a server continues alone.
const aloneWarning = `The new cluster has another id. A client that runs tasks of the old cluster keeps them and
ignores the new one: it starts and stops nothing until all its tasks have ended. A drain of its
node stops none of them: it waits, and at its deadline its record counts them as unconfirmed.`

func discard(c *cli.Base, dir string) error {
	done, err := datadir.Discard(dir, time.Now())
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Out, "The data is in %s now.\n", done.Dir)
	if done.Name == "" {
		done.Name = "NAME"
	}
	fmt.Fprintf(c.Out, `Next:
  1. nodedrain server remove %s
  2. Start a server on %s with another -name and another -bind address, with -join and
     without -bootstrap-expect.
  3. When "nodedrain server members" shows the new server, delete the discarded data.
`, done.Name, dir)
	return nil
}

func alone(c *cli.Base, dir string) error {
	logger := hclog.New(&hclog.LoggerOptions{Name: "nodedrain", Level: hclog.Error, Output: c.Errs})
	done, err := datadir.MakeAlone(c.Ctx, dir, logger)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.Out, "Server %s is the only member of the new cluster %s, with the state of index %d.\n", done.Name, done.Cluster, done.Index)
	if done.Lost != "" {
		fmt.Fprintf(c.Out, "Acknowledged writes are lost: of the log, %s.\n", done.Lost)
	}
	for _, s := range done.Gone {
		fmt.Fprintf(c.Out, "Never start server %s (%s) with its data again. Empty its data directory first.\n", s.ID, s.Address)
	}
	fmt.Fprint(c.Out, `Next:
  1. Start this server. Start new servers with empty data directories that join it.
  2. Look at "nodedrain node status NODE" of each node. The drivers of a client that ignores the
     new cluster are unhealthy, with this reason.
  3. On each machine of such a client, end the tasks: stop the client, and run
     "nodedrain client -config FILE -destroy". Purge the old node, and start the client again.
`)
	return nil
}
