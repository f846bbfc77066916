// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"net/netip"
	"slices"
	"sync"
	"time"
)

// How long an answer counts, and how many are kept. A program may keep an address far
// longer than the answer allows.
const (
	pinFor  = 12 * time.Hour
	maxPins = 4096
)

// pins are the addresses that were answered for names.
type pins struct {
	mu   sync.Mutex
	byIP map[netip.Addr][]pin
	n    int
}

type pin struct {
	name  string
	until time.Time
}

func newPins() *pins { return &pins{byIP: make(map[netip.Addr][]pin)} }

func (p *pins) add(name string, addrs []netip.Addr) {
	until := time.Now().Add(pinFor)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range addrs {
		list := p.byIP[a]
		if i := slices.IndexFunc(list, func(x pin) bool { return x.name == name }); i >= 0 {
			list[i].until = until
			continue
		}
		if p.n >= maxPins {
			p.prune()
		}
		p.byIP[a] = append(p.byIP[a], pin{name, until})
		p.n++
	}
}

// prune makes room: a quarter, those that end first.
func (p *pins) prune() {
	all := make([]time.Time, 0, p.n)
	for _, list := range p.byIP {
		for _, x := range list {
			all = append(all, x.until)
		}
	}
	slices.SortFunc(all, time.Time.Compare)
	limit := all[len(all)/4]
	p.n = 0
	for a, list := range p.byIP {
		list = slices.DeleteFunc(list, func(x pin) bool { return !x.until.After(limit) })
		if p.n += len(list); len(list) == 0 {
			delete(p.byIP, a)
			continue
		}
		p.byIP[a] = list
	}
}

// names returns the names that an address was answered for.
func (p *pins) names(a netip.Addr) []string {
	at := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for _, x := range p.byIP[a] {
		if x.until.After(at) {
			out = append(out, x.name)
		}
	}
	return out
}

// has reports whether an address was answered for a name.
func (p *pins) has(name string, a netip.Addr) bool {
	at := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.byIP[a], func(x pin) bool { return x.name == name && x.until.After(at) })
}
