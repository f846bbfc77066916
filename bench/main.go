// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Command bench measures sandpit beside what a user would pick instead, on one
// machine in one interleaved run.
//
// It needs no running server: it starts its own on a private data directory and
// a loopback port, with authentication on and every command recorded, measures
// it through the public API as a client would, and ends all that it started.
// Peers are measured pair by pair with sandpit, so that what else the machine
// does meets both; a ratio is the median over the pairs. Absolute figures mean
// little on a busy machine: the report says what the load was.
//
// The package knows the client, and nothing of how a server works.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

// options are the flags.
type options struct {
	pairs int
	idle  int
	// processes that are started one after the other
	processes int
	blanks    int // that the server keeps
	million   bool
	// stopped sandboxes that the server knows
	registered int
	output     string
	peers      []string
	data       string
	images     string
	sandpit    string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	before := readUsage()
	report, err := measure(ctx, o)
	if err != nil {
		return err
	}
	report.Machine.since(before, readUsage())
	if o.output == "json" {
		return report.writeJSON(os.Stdout)
	}
	return report.writeText(os.Stdout)
}

func parse(args []string) (options, error) {
	images := os.Getenv("SANDPIT_TEST_IMAGES")
	if images == "" {
		images = "/var/tmp/sandpit-images"
	}
	var o options
	var peers string
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.IntVar(&o.pairs, "n", 200, "`pairs` of runs, 1 to 100000")
	fs.IntVar(&o.idle, "idle", 100, "idle `sandboxes` to weigh, 0 to 10000")
	fs.IntVar(&o.processes, "processes", 10_000, "`processes` to start one after the other, 0 or 10 to 1000000; 0 measures no processes")
	fs.IntVar(&o.blanks, "blanks", 0, "`processes` that the server keeps started for the next sandboxes, 0 to 256: 0 measures a create as it is by itself")
	fs.IntVar(&o.registered, "registered", 10_000, "stopped `sandboxes` among which to list, 0 to 1000000; 0 measures no lists. 100000 take an hour to make")
	fs.BoolVar(&o.million, "million", false, "measure snapshots, rollbacks and forks of 1,000,000 files, too: minutes more")
	fs.StringVar(&o.output, "o", "text", "`form` of the report: text or json")
	fs.StringVar(&peers, "peers", "runc", "`names` of peers, separated by commas; empty for none")
	fs.StringVar(&o.data, "data", "", "`directory` to make the private data directory in; the default is that for temporary files")
	fs.StringVar(&o.images, "images", images, "`directory` of images; one without the image costs a build first")
	fs.StringVar(&o.sandpit, "sandpit", "", "the server's `program`; the default is to build it")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	switch {
	case fs.NArg() > 0:
		return o, fmt.Errorf("%q is no flag", fs.Arg(0))
	case o.pairs < 1 || o.pairs > 100_000:
		return o, fmt.Errorf("-n %d is outside 1 to 100000", o.pairs)
	case o.idle < 0 || o.idle > 10_000:
		return o, fmt.Errorf("-idle %d is outside 0 to 10000", o.idle)
	case o.processes != 0 && (o.processes < 10 || o.processes > 1_000_000):
		return o, fmt.Errorf("-processes %d is outside 10 to 1000000", o.processes)
	case o.blanks < 0 || o.blanks > 256:
		return o, fmt.Errorf("-blanks %d is outside 0 to 256", o.blanks)
	case o.registered < 0 || o.registered > 1_000_000:
		return o, fmt.Errorf("-registered %d is outside 0 to 1000000", o.registered)
	case o.output != "text" && o.output != "json":
		return o, fmt.Errorf("-o %q is not text or json", o.output)
	}
	for name := range strings.SplitSeq(peers, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		if _, known := peerNames[name]; !known {
			return o, fmt.Errorf("-peers: %q is not known; there is runc", name)
		}
		if !slices.Contains(o.peers, name) {
			o.peers = append(o.peers, name)
		}
	}
	return o, nil
}
