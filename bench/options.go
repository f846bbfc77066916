// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Options say what to measure, and with what.
type Options struct {
	Program string // of the server: the path of a sandpit with its agent in it
	Data    string // where the private data directory is made; "": among the temporary files
	Images  string // directory of images; one without the default image costs a build first

	Pairs      int // interleaved runs of each comparison, 1 to 100,000; other parts derive theirs from it
	Idle       int // idle sandboxes to weigh, 0 to 10,000
	Processes  int // to start one after the other, 10 to 1,000,000; 0 measures none
	Prewarmed  int // sandboxes that the server keeps ready for the next creates, 0 to 256; 0 measures a create as it is by itself
	Sustain    int // seconds of create, command and delete without a pause, 0 to 86,400
	Density    int // sandboxes to keep alive at the same time, 0 to 100,000
	Records    int // commands to put on record in one sandbox, 0 to 10,000,000; 100,000 take minutes
	Registered int // stopped sandboxes among which to list, 0 to 1,000,000; 100,000 take an hour to make
	Cycles     int // of create, command and delete on an Engine, 0 to 100,000
	// DaytonaPython is a Python with Daytona's SDK, by which the part wires measures, too; "": it does not.
	DaytonaPython string
	Million       bool // measure snapshots, rollbacks and forks of 1,000,000 files, too: minutes more

	Peers   []string // names of [Peers]; nil is all of them
	Parts   []string // names of [Parts]; nil is all of them
	Attacks []string // names of [Attacks], of the part neighbours; nil is all of them
	Quick   bool     // the comparison with the peers and the commands alone, within a minute
	// Fetch lets peers that are not installed be fetched from where this system gets its
	// packages and modules. Nothing is installed on the host: they are kept in sandpit/bench of
	// the user's cache folder, from where later runs take them without being asked to, and the browser
	// where tests of pages have it.
	Fetch bool

	// Progress hears a line at each part's begin; nil: nobody does.
	Progress io.Writer
}

// Defaults are those of `sandpit bench`.
func Defaults() Options {
	return Options{Pairs: 200, Idle: 100, Processes: 10_000, Sustain: 10, Density: 100, Records: 10_000, Registered: 10_000, Cycles: 500}
}

// quickPairs are the pairs of a quick run, which has to end within a minute though
// each run of the slowest peer takes a third of a second; see [quickShare].
const quickPairs = 20

// Check tells what is out of bounds, naming the flag of the command line.
func (o *Options) Check() error {
	for _, c := range []struct {
		flag             string
		value, low, high int
	}{
		{"pairs", o.Pairs, 1, 100_000},
		{"idle", o.Idle, 0, 10_000},
		{"processes", o.Processes, 0, 1_000_000},
		{"prewarmed", o.Prewarmed, 0, 256},
		{"sustain", o.Sustain, 0, 86_400},
		{"density", o.Density, 0, 100_000},
		{"records", o.Records, 0, 10_000_000},
		{"registered", o.Registered, 0, 1_000_000},
		{"cycles", o.Cycles, 0, 100_000},
	} {
		if c.value < c.low || c.value > c.high {
			return fmt.Errorf("--%s %d is outside %d to %d", c.flag, c.value, c.low, c.high)
		}
	}
	if o.Processes != 0 && o.Processes < 10 {
		return fmt.Errorf("--processes %d: memory is compared after a tenth of them and after all, so give 10 or more, or 0 to leave it out", o.Processes)
	}
	if err := known("--peers", o.Peers, Peers()); err != nil {
		return err
	}
	if err := known("--attacks", o.Attacks, Attacks()); err != nil {
		return err
	}
	return known("--parts", o.Parts, Parts())
}

func known(flag string, names, all []string) error {
	for _, name := range names {
		if !slices.Contains(all, name) {
			return fmt.Errorf("%s: %q is not known; there is %s", flag, name, strings.Join(all, ", "))
		}
	}
	return nil
}

// Peers names the peers there are, sorted.
func Peers() []string { return slices.Sorted(maps.Keys(openers)) }

// Parts names the parts of a run, in their order.
func Parts() []string {
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = p.name
	}
	return names
}

// Attacks names the attacks beside which a command is measured, in their order.
func Attacks() []string {
	names := make([]string, len(attacks))
	for i, a := range attacks {
		names[i] = a.name
	}
	return names
}

// has reports whether a part is asked for.
func (o *Options) has(p part) bool {
	if o.Parts != nil {
		return slices.Contains(o.Parts, p.name)
	}
	return p.quick || !o.Quick
}

// pairs of one comparison.
func (o *Options) pairs() int {
	if o.Quick {
		return min(o.Pairs, quickPairs)
	}
	return o.Pairs
}
