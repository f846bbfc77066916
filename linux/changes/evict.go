// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package changes

import (
	"maps"
	"slices"
)

// maxLookups bounds the directories that one eviction looks up: it runs between two
// events, whose sandbox's commands wait meanwhile.
const maxLookups = 512

// evict throws away what a window knows of directories outside the tracked
// one: a package manager may touch a hundred thousand files that no answer will
// list. They are not thrown away from the start, since only the end of a window
// tells which directories moved in or out; what that costs in certainty is
// marked on the directory and told by Complete.
func (d *diff) evict() {
	w := d.w
	if err := d.start(); err != nil {
		w.evict = nil
		return
	}
	if w.epoch == 0 {
		w.epoch = 1
	}
	d.byPath = make(map[string]*node)
	looked := make(map[*node]bool)
	look := func(n *node) bool {
		if !looked[n] && len(looked) >= maxLookups {
			return false
		}
		looked[n] = true
		d.locate(n)
		return true
	}
	for _, n := range w.moved {
		if look(n) && n.place.alive {
			d.byPath[n.place.now] = n
		}
	}
	for _, e := range w.entries {
		n := e.dir
		if n.outside == w.epoch || n.kept == w.epoch || looked[n] || !look(n) {
			continue
		}
		before, had := d.before(n)
		if !n.place.alive || d.holds(n.place.now) || had && d.holds(before) {
			n.kept = w.epoch
			continue
		}
		n.outside, n.dropped = w.epoch, true
	}
	for _, n := range w.nodes {
		n.place = place{}
	}
	w.keepInside()
	if w.cost > w.limit/16*15 {
		w.evict = nil // it is the tracked directory that is full
	}
}

// keepInside rebuilds the window without the entries of directories outside.
func (w *window) keepInside() {
	old := w.nodes
	w.nodes, w.cost = make(map[string]*node), 0
	keep := func(n *node) {
		for ; n != nil && w.nodes[n.key] == nil; n = n.from {
			w.nodes[n.key] = n
			w.cost += nodeCost + 2*len(n.key)
		}
	}
	entries := w.entries
	w.entries = nil
	for _, e := range entries {
		if e.dir.outside == w.epoch {
			continue
		}
		w.entries = append(w.entries, e)
		w.cost += entryCost + 2*len(e.name)
		keep(e.dir)
		keep(e.was)
		keep(e.last)
	}
	for _, n := range w.moved {
		keep(n)
	}
	for _, n := range w.touched {
		keep(n)
	}
	renames := slices.Concat(slices.Collect(maps.Values(w.pending)), w.doubts, w.clear)
	for _, p := range renames {
		keep(p.old.dir)
		keep(p.new.dir)
		keep(p.moved)
		keep(p.victim)
	}
	w.cost += doubtCost * (len(w.doubts) + len(w.clear))
	// To know a directory as outside saves looking it up again; no more than that.
	for _, n := range old {
		if n.outside == w.epoch {
			n.names = nil
			if w.cost < w.limit/2 {
				keep(n)
			}
		}
	}
}
