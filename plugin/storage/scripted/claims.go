package scripted

import (
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
)

// Claim requests a claim from the servers, and stores it when they have granted it. If the client
// no longer waits, the servers do not see the request.
func (s *Storage) Claim(q storage.Request, waiting func() bool, reply func(storage.Claimed, error)) {
	c := s.begin(Call{Step: Claiming, Request: q}, nil)
	var got storage.Claimed
	f := &flight{call: c, waiting: waiting, end: func(err error) {
		if err != nil {
			got = storage.Claimed{}
		}
		reply(got, err)
	}}
	s.flights = append(s.flights, f)
	s.play(f, s.fault(c), func(answer func(error)) {
		if !waiting() {
			return
		}
		s.options.Claim(q, func(claimed storage.Claimed, err error) {
			if err == nil {
				s.granted(q, claimed)
			}
			got = claimed
			answer(err)
		})
	}, func() {})
}

// Release releases a claim, and removes it when the servers have released it.
func (s *Storage) Release(q storage.Request, waiting func() bool, reply func(error)) {
	key := cluster.ClaimKey{Volume: q.Volume, Alloc: q.Alloc}
	c := s.begin(Call{Step: Releasing, Request: q}, s.mounted(q))
	if claim, is := s.claims[key]; is {
		claim.ReleasingAt = s.clock.Now()
		s.claims[key] = claim
	}
	f := &flight{call: c, waiting: waiting, end: reply}
	s.flights = append(s.flights, f)
	s.play(f, s.fault(c), func(answer func(error)) {
		s.options.Release(q, func(err error) {
			claim, is := s.claims[key]
			switch {
			case err == nil:
				delete(s.claims, key)
			case is:
				claim.Kept = true
				s.claims[key] = claim
			}
			answer(err)
		})
	}, func() {})
}

// TakeBack removes a claim that the servers free without a release: after the report of an end that
// does not name the volume, or by force.
func (s *Storage) TakeBack(k cluster.ClaimKey) { delete(s.claims, k) }

// mounted states which mounts still need a claim that the client releases.
func (s *Storage) mounted(q storage.Request) (wrong []string) {
	for _, m := range s.Mounts() {
		switch {
		case m.Volume != q.Volume || m.Usage != q.Usage:
		case m.Alloc == q.Alloc:
			wrong = append(wrong, "the volume is published at "+m.Path)
		case m.Alloc == "" && !s.claimedByOther(q):
			wrong = append(wrong, fmt.Sprintf("the volume is staged at %s, and no other allocation has a claim", m.Path))
		}
	}
	return wrong
}

// claimedByOther reports whether another allocation has a claim for the usage.
func (s *Storage) claimedByOther(q storage.Request) bool {
	for key, c := range s.claims {
		if key.Volume == q.Volume && key.Alloc != q.Alloc && c.Usage == q.Usage {
			return true
		}
	}
	return false
}
