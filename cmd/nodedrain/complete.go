package main

import (
	"context"
	"flag"
	"regexp"
	"time"

	"github.com/posener/complete"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// completionTimeout bounds how long a shell waits for ids.
const completionTimeout = 2 * time.Second

// nodeIDs completes a prefix of a node's id or name. It offers nothing if no server answers.
func (c *operatorCommand) nodeIDs() complete.Predictor {
	return complete.PredictFunc(func(typed complete.Args) []string {
		asked, err := c.connect(&connectFlags{})
		if err != nil {
			return nil
		}
		defer asked.Close()
		ctx, cancel := context.WithTimeout(c.ctx, completionTimeout)
		defer cancel()
		found, err := asked.Search(ctx, wire.SearchRequest{Prefix: typed.Last, Context: searchNodes})
		if err != nil {
			return nil
		}
		return append(found.Matches[searchNodes], namesWith(ctx, asked, typed.Last)...)
	})
}

// mostNames bounds how many names of nodes a shell is offered.
const mostNames = 20

// namesWith returns names of nodes that begin with a prefix.
func namesWith(ctx context.Context, asked *client.Client, prefix string) (names []string) {
	literal, ok := filterText("^" + regexp.QuoteMeta(prefix))
	if !ok {
		return nil
	}
	stubs, _, err := asked.Nodes(ctx, client.NodesQuery{Query: client.Query{Filter: "Name matches " + literal, PerPage: mostNames}})
	if err != nil {
		return nil
	}
	for _, n := range stubs {
		names = append(names, n.Name)
	}
	return names
}

// searchNodes is the context of a search for nodes.
const searchNodes = "nodes"

// flagPredictors completes flags and the values of those that name files and folders. A
// boolean flag has no value to complete.
func flagPredictors(set *flag.FlagSet) complete.Flags {
	known := map[string]complete.Predictor{
		"ca-cert": complete.PredictFiles("*"), "client-cert": complete.PredictFiles("*"), "client-key": complete.PredictFiles("*"),
		"ca-path": complete.PredictDirs("*"), "data-dir": complete.PredictDirs("*"),
		"ca": complete.PredictFiles("*"), "cert": complete.PredictFiles("*"), "key": complete.PredictFiles("*"), "tokens": complete.PredictFiles("*"),
		"log-level": complete.PredictSet("trace", "debug", "info", "warn", "error", "off"),
		"deadline":  complete.PredictSet("10m", "30m", "1h", "2h"),
	}
	flags := complete.Flags{}
	set.VisitAll(func(f *flag.Flag) {
		predictor := known[f.Name]
		if boolean, is := f.Value.(interface{ IsBoolFlag() bool }); is && boolean.IsBoolFlag() {
			predictor = complete.PredictNothing
		} else if predictor == nil {
			predictor = complete.PredictAnything
		}
		flags["-"+f.Name] = predictor
	})
	return flags
}

// AutocompleteArgs completes the node.
func (c *nodeDrainCommand) AutocompleteArgs() complete.Predictor { return c.nodeIDs() }

// AutocompleteFlags completes the flags.
func (c *nodeDrainCommand) AutocompleteFlags() complete.Flags {
	return flagPredictors(new(nodeDrainFlags).set())
}

// AutocompleteArgs completes the node.
func (c *nodeStatusCommand) AutocompleteArgs() complete.Predictor { return c.nodeIDs() }

// AutocompleteFlags completes the flags.
func (c *nodeStatusCommand) AutocompleteFlags() complete.Flags {
	return flagPredictors(new(nodeStatusFlags).set())
}

// AutocompleteArgs completes the node.
func (c *nodeEligibilityCommand) AutocompleteArgs() complete.Predictor { return c.nodeIDs() }

// AutocompleteFlags completes the flags.
func (c *nodeEligibilityCommand) AutocompleteFlags() complete.Flags {
	return flagPredictors(new(nodeEligibilityFlags).set())
}

// AutocompleteArgs completes the node.
func (c *nodeExplainCommand) AutocompleteArgs() complete.Predictor { return c.nodeIDs() }

// AutocompleteFlags completes the flags.
func (c *nodeExplainCommand) AutocompleteFlags() complete.Flags {
	return flagPredictors(new(nodeExplainFlags).set())
}

// AutocompleteArgs completes nothing: the command takes no argument.
func (c *drainListCommand) AutocompleteArgs() complete.Predictor { return complete.PredictNothing }

// AutocompleteFlags completes the flags.
func (c *drainListCommand) AutocompleteFlags() complete.Flags {
	return flagPredictors(new(drainListFlags).set())
}

// AutocompleteArgs completes nothing: the command takes no argument.
func (c *serverCommand) AutocompleteArgs() complete.Predictor { return complete.PredictNothing }

// AutocompleteFlags completes the flags.
func (c *serverCommand) AutocompleteFlags() complete.Flags {
	return flagPredictors(new(serverFlags).set())
}

// AutocompleteArgs completes nothing: the command takes no argument.
func (c *clientsCommand) AutocompleteArgs() complete.Predictor { return complete.PredictNothing }

// AutocompleteFlags completes the flags.
func (c *clientsCommand) AutocompleteFlags() complete.Flags {
	return flagPredictors(new(clientsFlags).set())
}
