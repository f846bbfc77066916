// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"slices"
	"time"

	"sandpit.dev/test/browser"
	"sandpit.dev/test/browser/cost"
)

// BesideTabs is a command, argv ["/bin/true"], in a sandbox whose pages are open in tabs, and with none of them open.
type BesideTabs struct {
	Tabs   int      `json:"tabs"`
	Rounds int      `json:"rounds"` // in each of which the command runs many times on each side
	Alone  *Figures `json:"alone"`
	// One is with one tab that somebody looks at and all others behind it; All with all of them looked at, each in a window of
	// another person.
	One *Figures `json:"one_seen"`
	All *Figures `json:"all_seen"`
	// The ratios are of a round's median to that without a tab in the same round.
	OneRatio *Spread `json:"one_seen_ratio"`
	AllRatio *Spread `json:"all_seen_ratio"`
}

// openTab is a tab of the browser.
type openTab struct {
	context.Context
	close func()
}

// besideTabs runs commands without a page open, with one that is seen and others behind it, and with all of them seen, in turn.
func (o *ours) besideTabs(ctx, first context.Context, own *server, ref string, n consoleSizes) (_ *BesideTabs, err error) {
	behind, err := openTabs(first, n.tabs, browser.Another, nil)
	defer closeTabs(behind)
	if err != nil {
		return nil, err
	}
	people, err := openTabs(first, n.tabs, browser.Apart, func(tab context.Context) error { return cost.SignIn(tab, own.url, own.token) })
	defer closeTabs(people)
	if err != nil {
		return nil, err
	}
	sides := []func() error{
		func() error { return nil },
		func() error { return show(behind, own.url, ref, true) },
		func() error { return show(people, own.url, ref, false) },
	}
	var all [3]series
	var ratios [3][]float64
	for round := range n.rounds {
		var medians [3]time.Duration
		for turn := range sides {
			side := (round + turn) % len(sides) // nobody always runs in another's wake
			err := errors.Join(leave(behind), leave(people), sides[side](), sleep(ctx, calm))
			if err != nil {
				return nil, err
			}
			s, err := timed(ctx, n.execs, func() error { return o.exec(ctx, ref, byArgv) })
			if err != nil {
				return nil, err
			}
			all[side].n += s.n
			all[side].ok = append(all[side].ok, s.ok...)
			medians[side] = rank(slices.Sorted(slices.Values(s.ok)), .5)
		}
		for side := range sides {
			ratios[side] = append(ratios[side], float64(medians[side])/float64(medians[0]))
		}
	}
	return &BesideTabs{
		Tabs: n.tabs, Rounds: n.rounds, Alone: all[0].figures(), One: all[1].figures(), All: all[2].figures(),
		OneRatio: spread(ratios[1]), AllRatio: spread(ratios[2]),
	}, nil
}

// openTabs opens tabs; those that it opened before it failed are returned, too.
func openTabs(of context.Context, n int, open func(of context.Context, hear func(any)) (context.Context, func(), error), ready func(tab context.Context) error) ([]openTab, error) {
	var all []openTab
	for range n {
		tab, done, err := open(of, nil)
		if err != nil {
			return all, err
		}
		all = append(all, openTab{tab, done})
		if err := cost.Watch(tab); err != nil {
			return all, err
		}
		if ready == nil {
			continue
		}
		if err := ready(tab); err != nil {
			return all, err
		}
	}
	return all, nil
}

func closeTabs(all []openTab) {
	for _, t := range all {
		t.close()
	}
}

// show has each tab show a part of a sandbox's page. With behind only the first one is seen, and it is opened last: browsers have few connections for
// all of their tabs.
func show(all []openTab, server, ref string, behind bool) error {
	parts := []string{"", "/activity", "/processes", "/files", "/network", "/ports", "/time", "/runs", "/settings", "/terminal"}
	for i, t := range slices.Backward(all) {
		if err := browser.Visit(t, server+"/console/sandboxes/"+ref+parts[i%len(parts)]); err != nil {
			return err
		}
		if err := cost.Until(t, "document.querySelector('.title .state.running')"); err != nil {
			return err
		}
		if behind && i > 0 {
			if err := cost.Hide(t, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// leave has tabs show nothing.
func leave(all []openTab) error {
	for _, t := range all {
		if err := browser.Visit(t, "about:blank"); err != nil {
			return err
		}
	}
	return nil
}
