package guard

import (
	"fmt"
	"time"
)

// Contact is the last contact of a client with the servers.
type Contact struct {
	// Sent is when the client sent the last heartbeat that was answered.
	Sent time.Duration
	// TTL is the time from the answer until the servers must have the next heartbeat, or zero if it is not
	// known.
	TTL time.Duration
}

// mostPatience is by how much a TTL lengthens a StopOnClientAfter at most. The servers count from the end of
// the TTL, except after the deletion of a node that they reached. So it is much less than the difference of
// [cluster.StopMarginOfNode] and [cluster.KillMarginOfNode].
const mostPatience = 30 * time.Second

// Limit is how long an allocation with a StopOnClientAfter may run after the contact. A client that sends its
// heartbeats in time has not lost its contact, however short the StopOnClientAfter is.
func (c Contact) Limit(after time.Duration) time.Duration {
	return max(after, min(c.TTL, later(after, mostPatience)))
}

// StopAt is when an allocation with a StopOnClientAfter must stop.
func (c Contact) StopAt(after time.Duration) time.Duration { return later(c.Sent, c.Limit(after)) }

// Silence is the part of the time from the contact to now that counts as time without contact: what is as long
// as the StopOnClientAfter of an allocation has reached its Limit.
func (c Contact) Silence(now time.Duration) time.Duration {
	silence := now - c.Sent
	if silence < c.TTL {
		silence -= mostPatience
	}
	return silence
}

// Reason is a text for operators: why an allocation with a StopOnClientAfter stops.
func (c Contact) Reason(after time.Duration) string {
	text := "no contact with the servers for " + c.Limit(after).String()
	if c.Limit(after) > after {
		text += fmt.Sprintf(": stop_on_client_after is %s, and shorter than the time in which a heartbeat is due", after)
	}
	return text
}
