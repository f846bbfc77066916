// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"sandpit.dev/bench"
	"sandpit.dev/daemon"
)

func newBench(a *app) *cobra.Command {
	o := bench.Defaults()
	c := &cobra.Command{
		Use:   "bench [flags]",
		Short: "Measure sandpit on this machine, beside what you would pick instead",
		Long: `Measure sandpit on this machine, beside what you would pick instead.

It needs no running server: it starts one of its own on a private data directory, measures it through the
public API, each figure in turn with the peers', and ends all that it started. Needs root. A peer that is
not installed is left out, with the reason; --fetch gets it without installing it.

Parts: ` + strings.Join(bench.Parts(), ", ") + `.
Peers: ` + strings.Join(bench.Peers(), ", ") + `.`,
		Args: takes(0, 0),
	}
	f := c.Flags()
	f.BoolVar(&o.Quick, "quick", false, "the comparison with the peers alone, within a minute")
	f.BoolVar(&o.Fetch, "fetch", false, "fetch peers that are not installed into a private directory, which is removed again")
	f.StringSliceVar(&o.Parts, "parts", nil, "`parts` to measure; all unless given")
	f.StringSliceVar(&o.Peers, "peers", nil, "`peers` to measure; all unless given, none if empty")
	f.IntVar(&o.Pairs, "pairs", o.Pairs, "interleaved `runs` of each comparison, 1 to 100000; --quick makes 20 at most")
	f.IntVar(&o.Blanks, "blanks", o.Blanks, "`sandboxes` that the server keeps started for the next creates, 0 to 256")
	f.IntVar(&o.Idle, "idle", o.Idle, "idle `sandboxes` to weigh, 0 to 10000")
	f.IntVar(&o.Processes, "processes", o.Processes, "`processes` to start one after the other, 0 or 10 to 1000000")
	f.IntVar(&o.Registered, "registered", o.Registered, "stopped `sandboxes` among which to list, 0 to 1000000")
	f.BoolVar(&o.Million, "million", false, "snapshots of 1,000,000 files, too: minutes more")
	f.StringVar(&o.Data, "data", "", "`directory` for the private data directory; among the temporary files unless given")
	images := f.String("images", "", "`directory` of images; the server's own unless given")
	out := formatFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) (err error) {
		cfg := daemon.DefaultConfig()
		if err := cfg.ReadEnv(a.getenv); err != nil {
			return err
		}
		if err := cfg.Check(); err != nil {
			return err
		}
		if o.Images = cfg.Images; *images != "" {
			o.Images = *images
		}
		if o.Program, err = os.Executable(); err != nil {
			return err
		}
		if f.Changed("peers") && o.Peers == nil {
			o.Peers = []string{}
		}
		if err := o.Check(); err != nil {
			return misuse(c, "%s", err)
		}
		o.Progress = a.stderr
		report, err := bench.Run(c.Context(), o)
		if err != nil {
			return err
		}
		if *out == asJSON {
			return report.WriteJSON(a.stdout)
		}
		return report.WriteText(a.stdout)
	}
	return c
}
