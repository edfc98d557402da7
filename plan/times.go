package plan

import (
	"math/rand/v2"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/simclient"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// declaredStart is the time from placement to running where nothing was observed: a job declares none.
const declaredStart = 2 * time.Second

// behaviour returns what an allocation does on its node.
func behaviour(a *cluster.Allocation, _ *rand.Rand) simclient.Behaviour {
	return simclient.Behaviour{Start: declaredStart, Stop: a.StopTime(), Run: simclient.Never}
}
