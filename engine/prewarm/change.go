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
	p.ByCall = true
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
		s.list[at].byCall = true
	default:
		s.retire(s.list[at])
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

// retire has a pool give up what it has. The caller holds mu.
func (s *Pools) retire(p *pool) {
	p.Resize(0, 0, 1)
	s.retired = append(s.retired, p)
}

// Prepare checks a list of pools, and returns what replaces by it the pools that no call made or changed. A pool that is
// not in the list is emptied; one whose image and limits stay the same keeps its sandboxes. Pools of calls stay as they are.
func (s *Pools) Prepare(list []Pool) (replace func(), err error) {
	next, err := s.listed(list)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	all, _ := s.merged(next)
	s.mu.Unlock()
	if len(all) > MaxPools {
		return nil, fault.InvalidField("pools", "there are %d with those that calls made, and at most %d can be", len(all), MaxPools)
	}
	return func() {
		s.changing.Lock()
		defer s.changing.Unlock()
		s.mu.Lock()
		defer s.mu.Unlock()
		all, gone := s.merged(next)
		for i, n := range next {
			if p := all[i]; p != n && !p.byCall {
				p.Resize(n.Pool.Min, n.Pool.Max, n.Pool.Refill)
			}
		}
		for _, p := range gone {
			s.retire(p)
		}
		s.list = all
		s.poke()
	}, nil
}

// merged returns what the pools are with next in the place of those that are not of calls, the pools of next first and in its
// order, and which of those that there are go. The caller holds mu.
func (s *Pools) merged(next []*pool) (all, gone []*pool) {
	kept := make(map[*pool]bool)
	for _, n := range next {
		if at := slices.IndexFunc(s.list, func(o *pool) bool { return o.Name == n.Name }); at >= 0 && (s.list[at].byCall || s.list[at].like(n)) {
			n = s.list[at]
			kept[n] = true
		}
		all = append(all, n)
	}
	for _, p := range s.list {
		switch {
		case kept[p]:
		case p.byCall:
			all = append(all, p)
		default:
			gone = append(gone, p)
		}
	}
	return all, gone
}
