package cli

import (
	"context"
	"regexp"
	"strings"
	"time"

	"github.com/posener/complete"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// completionTimeout bounds how long a shell waits for ids.
const completionTimeout = 2 * time.Second

// predictor completes the first argument of a command. It offers no ids if no server answers.
func (c *Base) predictor(args Arguments) complete.Predictor {
	first, _, _ := strings.Cut(strings.Trim(string(args), "["), " ")
	switch first = strings.TrimRight(first, ".]"); first {
	case "FILE", "PATH":
		return complete.PredictFiles("*")
	case "NODE":
		return complete.PredictFunc(func(typed complete.Args) []string {
			return append(c.search(searchNodes, typed.Last), c.namesWith(typed.Last)...)
		})
	case "DRAIN":
		return complete.PredictFunc(func(typed complete.Args) []string { return c.unconfirmedDrains(typed.Last) })
	case "ALLOC", "EVAL", "JOB", "PLUGIN", "VOLUME":
		context := strings.ToLower(first) + "s"
		return complete.PredictFunc(func(typed complete.Args) []string { return c.search(context, typed.Last) })
	}
	return complete.PredictNothing
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
func (c *Base) offer(request func(context.Context, *client.Client)) {
	api, err := c.Connect(&connectFlags{})
	if err != nil {
		return
	}
	defer api.Close()
	ctx, cancel := context.WithTimeout(c.Ctx, completionTimeout)
	defer cancel()
	request(ctx, api)
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

// unconfirmedDrains returns the ids of ended drains that count unconfirmed allocations and begin with a prefix.
func (c *Base) unconfirmedDrains(prefix string) (ids []string) {
	c.offer(func(ctx context.Context, api *client.Client) {
		drains, _, err := api.Drains(ctx, client.Query{})
		if err != nil {
			return
		}
		for _, d := range drains.Recent {
			if d.Unconfirmed > 0 && strings.HasPrefix(d.ID, prefix) {
				ids = append(ids, d.ID)
			}
		}
	})
	return ids
}

// searchNodes is the context of a search for nodes.
const searchNodes = "nodes"

// predictors completes flags and the values of those that name files and folders. A boolean flag has no value
// to complete.
func (o Options) predictors() complete.Flags {
	values := map[string]complete.Predictor{
		"log-level": complete.PredictSet("trace", "debug", "info", "warn", "error", "off"),
		"deadline":  complete.PredictSet("10m", "30m", "1h", "2h"),
	}
	flags := complete.Flags{}
	for _, each := range o {
		predictor := values[each.name]
		switch {
		case each.name == "":
			continue
		case each.value == "":
			predictor = complete.PredictNothing
		case each.value == "FILE":
			predictor = complete.PredictFiles("*")
		case each.value == "DIR":
			predictor = complete.PredictDirs("*")
		case predictor == nil:
			predictor = complete.PredictAnything
		}
		flags["-"+each.name] = predictor
	}
	return flags
}
