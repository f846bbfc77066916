// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package prewarm

import (
	"slices"

	"sandpit.dev/fault"
)

// Change makes a pool what p says, from now on: the one of p's name, or a new one. Of a pool that is there
// only Min, Max and Refill change where image, runtime and limits are the same; else what it has ready is
// removed. commit is called once p is known to be right, and its error ends the change; nil: nothing is.
func (s *Pools) Change(p Pool, commit func(Pool) error) error {
	next, err := s.newPool(p)
	if err != nil {
		return err
	}
	s.changing.Lock() // not mu, which the store may wait for
	defer s.changing.Unlock()
	list := s.pools()
	at := slices.IndexFunc(list, func(o *pool) bool { return o.Name == next.Name })
	if at < 0 && len(list) >= MaxPools {
		return fault.New(fault.Exhausted, "there are %d pools, and at most %d can be", len(list), MaxPools)
	}
	if commit != nil {
		if err := commit(next.Pool); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case at < 0:
		s.list = append(slices.Clone(s.list), next)
	case s.list[at].like(next):
		s.list[at].Resize(next.Pool.Min, next.Pool.Max, next.Pool.Refill)
	default:
		s.list[at].Resize(0, 0, 1)
		s.retired = append(s.retired, s.list[at])
		s.list = slices.Clone(s.list)
		s.list[at] = next
	}
	s.poke()
	return nil
}

// like reports whether two pools keep the same sandboxes.
func (p *pool) like(o *pool) bool {
	return p.Image == o.Image && p.Runtime == o.Runtime && p.Limits == o.Limits && p.Template == o.Template
}

// pools returns those that creates are given sandboxes of.
func (s *Pools) pools() []*pool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list
}

// all returns also those that only are to become empty.
func (s *Pools) all() []*pool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retired = slices.DeleteFunc(s.retired, func(p *pool) bool { return p.empty() })
	return slices.Concat(s.list, s.retired)
}
