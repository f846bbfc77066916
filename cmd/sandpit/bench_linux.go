// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sandpit.dev/bench"
	"sandpit.dev/bench/page"
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
not installed is left out, with the reason; --fetch gets it without installing it, and keeps it in
sandpit/bench of the user's cache folder (XDG_CACHE_HOME), where later runs find it.

--report writes a page with plots, and the run as JSON; --from makes all of it anew from such a run.

Parts: ` + strings.Join(bench.Parts(), ", ") + `.
Peers: ` + strings.Join(bench.Peers(), ", ") + `.
Attacks: ` + strings.Join(bench.Attacks(), ", ") + `.`,
		Args: takes(0, 0),
	}
	f := c.Flags()
	f.BoolVar(&o.Quick, "quick", false, "the comparison with the peers alone, within a minute")
	f.BoolVar(&o.Fetch, "fetch", false, "fetch peers that are not installed, and keep them in the user's cache folder, without installing them")
	f.StringSliceVar(&o.Parts, "parts", nil, "`parts` to measure; all unless given")
	f.StringSliceVar(&o.Peers, "peers", nil, "`peers` to measure; all unless given, none if empty")
	f.StringSliceVar(&o.Attacks, "attacks", nil, "`attacks` beside which the part neighbours measures a command; all unless given")
	f.IntVar(&o.Pairs, "pairs", o.Pairs, "interleaved `runs` of each comparison, 1 to 100000; --quick makes 20 at most")
	f.IntVar(&o.Prewarmed, "prewarmed", o.Prewarmed, "`sandboxes` that the server keeps ready for the next creates, 0 to 256")
	f.IntVar(&o.Idle, "idle", o.Idle, "idle `sandboxes` to weigh, 0 to 10000")
	f.IntVar(&o.Processes, "processes", o.Processes, "`processes` to start one after the other, 0 or 10 to 1000000")
	f.IntVar(&o.Sustain, "sustain", o.Sustain, "`seconds` of create, command and delete without a pause, 0 to 86400")
	f.IntVar(&o.Density, "density", o.Density, "`sandboxes` to keep alive at the same time, step by step, 0 to 100000")
	f.IntVar(&o.Records, "records", o.Records, "`commands` to put on record in one sandbox, step by step, 0 to 10000000")
	f.IntVar(&o.Registered, "registered", o.Registered, "stopped `sandboxes` among which to list, 0 to 1000000")
	f.BoolVar(&o.Million, "million", false, "snapshots of 1,000,000 files, too: minutes more")
	f.StringVar(&o.Data, "data", "", "`directory` for the private data directory; among the temporary files unless given")
	images := f.String("images", "", "`directory` of images; the server's own unless given")
	to := f.String("report", "", "`directory` for "+page.Page+", its plots and the run as JSON, too")
	from := f.String("from", "", "report.json of a saved `run`, instead of a measurement")
	out := formatFlag(c)
	give := func(report *bench.Report) error {
		write := report.WriteText
		if *out == asJSON {
			write = report.WriteJSON
		}
		err := write(a.stdout) // first: what took an hour is seen whatever comes
		if *to != "" {
			err = errors.Join(err, page.Write(*to, report))
		}
		return err
	}
	c.RunE = func(c *cobra.Command, _ []string) (err error) {
		if *from != "" {
			if only := onlyWith(c, "from", "report", "output"); only != "" {
				return misuse(c, "--from measures nothing, so --%s has no effect", only)
			}
			report, err := page.Read(*from)
			if err != nil {
				return err
			}
			return give(report)
		}
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
		if *to != "" {
			if err := page.Prepare(*to); err != nil {
				return err
			}
		}
		o.Progress = a.stderr
		ctx, stop := interruptible(c.Context())
		defer stop()
		report, err := bench.Run(ctx, o)
		if report == nil {
			return interrupted(ctx, err)
		}
		return errors.Join(give(report), err)
	}
	return c
}

// onlyWith names a flag that is given and none of these; "": there is none.
func onlyWith(c *cobra.Command, with ...string) (other string) {
	c.Flags().Visit(func(f *pflag.Flag) {
		if other == "" && !slices.Contains(with, f.Name) {
			other = f.Name
		}
	})
	return other
}
