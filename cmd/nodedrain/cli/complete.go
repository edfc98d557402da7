package cli

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

// NodeIDs completes a prefix of a node's id or name. It offers nothing if no server answers.
func (c *Base) NodeIDs() complete.Predictor {
	return complete.PredictFunc(func(typed complete.Args) []string {
		return append(c.search(searchNodes, typed.Last), c.namesWith(typed.Last)...)
	})
}

// search returns the ids that begin with a prefix.
func (c *Base) search(of, prefix string) (ids []string) {
	c.offer(func(ctx context.Context, api *client.Client) {
		found, err := api.Search(ctx, wire.SearchRequest{Prefix: prefix, Context: of})
		if err == nil {
			ids = found.Matches[of]
		}
	})
	return ids
}

// offer requests what a shell may offer, within the time that a user waits.
func (c *Base) offer(ask func(context.Context, *client.Client)) {
	api, err := c.Connect(&ConnectFlags{})
	if err != nil {
		return
	}
	defer api.Close()
	ctx, cancel := context.WithTimeout(c.Ctx, completionTimeout)
	defer cancel()
	ask(ctx, api)
}

// mostNames bounds how many names of nodes a shell is offered.
const mostNames = 20

// namesWith returns names of nodes that begin with a prefix.
func (c *Base) namesWith(prefix string) (names []string) {
	literal, ok := filterText("^" + regexp.QuoteMeta(prefix))
	if !ok {
		return nil
	}
	c.offer(func(ctx context.Context, api *client.Client) {
		stubs, _, err := api.Nodes(ctx, client.NodesQuery{Query: client.Query{Filter: "Name matches " + literal, PerPage: mostNames}})
		if err != nil {
			return
		}
		for _, n := range stubs {
			names = append(names, n.Name)
		}
	})
	return names
}

// IDs completes a prefix of an id in a context of the search. It offers nothing if no server answers.
func (c *Base) IDs(context string) complete.Predictor {
	return complete.PredictFunc(func(typed complete.Args) []string { return c.search(context, typed.Last) })
}

// searchNodes is the context of a search for nodes.
const searchNodes = "nodes"

// FlagPredictors completes flags and the values of those that name files and folders. A
// boolean flag has no value to complete.
func FlagPredictors(set *flag.FlagSet) complete.Flags {
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
