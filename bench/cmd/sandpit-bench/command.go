// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sandpit.dev/bench"
	"sandpit.dev/bench/page"
	"sandpit.dev/fault"
)

// format is how a run is printed.
type format string

const (
	asText format = "text"
	asJSON format = "json"
)

func (f *format) String() string { return string(*f) }
func (f *format) Type() string   { return "FORMAT" }

func (f *format) Set(s string) error {
	switch format(s) {
	case asText, asJSON:
		*f = format(s)
		return nil
	}
	return fmt.Errorf("%q is neither text nor json", s)
}

// newCommand returns the command, which prints a run to stdout and what it is at to stderr.
func newCommand(stdout, stderr io.Writer, getenv func(string) string) *cobra.Command {
	o := bench.Defaults()
	c := &cobra.Command{
		Use:   "sandpit-bench [flags]",
		Short: "Measure sandpit on this machine, beside what you would pick instead",
		Long: `Measure sandpit on this machine, beside what you would pick instead.

It needs no running server: it starts one of its own on a private data directory, measures it through the
public API, each figure in turn with the peers', and ends all that it started. Needs root. A peer that is
not installed is left out, with the reason; --fetch gets it without installing it, and keeps it in
sandpit/bench of the user's cache folder (XDG_CACHE_HOME), where later runs find it. The part console
needs a browser: --fetch unpacks Debian's Chromium below /var/tmp, where the tests of pages have it, too.

--report writes a page with plots, and the run as JSON; --from makes all of it anew from such a run.

Parts: ` + strings.Join(bench.Parts(), ", ") + `.
Peers: ` + strings.Join(bench.Peers(), ", ") + `.
Attacks: ` + strings.Join(bench.Attacks(), ", ") + `.`,
		Args:          noArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	c.SetOut(stdout)
	c.SetErr(stderr)
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return misuse{err} })
	f := c.Flags()
	f.BoolVar(&o.Quick, "quick", false, "the comparison with the peers alone, within a minute")
	f.BoolVar(&o.Fetch, "fetch", false, "fetch peers that are not installed, and a browser, and keep them, without installing them")
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
	f.IntVar(&o.Cycles, "cycles", o.Cycles, "`lives` of sandboxes on Docker's Engine, of which nothing may be left, 0 to 100000")
	f.BoolVar(&o.Million, "million", false, "snapshots of 1,000,000 files, too: minutes more")
	f.StringVar(&o.DaytonaPython, "daytona-python", "", "a `python3` with Daytona's SDK, by which the part wires measures, too")
	f.StringVar(&o.Data, "data", "", "`directory` for the private data directory; among the temporary files unless given")
	f.StringVar(&o.Images, "images", imagesOf(getenv), "`directory` of images")
	f.StringVar(&o.Program, "program", getenv("SANDPIT_BENCH_PROGRAM"), "the `sandpit` to measure; the one beside this program unless given")
	to := f.String("report", "", "`directory` for "+page.Page+", its plots and the run as JSON, too")
	from := f.String("from", "", "report.json of a saved `run`, instead of a measurement")
	out := asText
	f.VarP(&out, "output", "o", "text or json")
	publish := func(report *bench.Report) error {
		write := report.WriteText
		if out == asJSON {
			write = report.WriteJSON
		}
		err := write(stdout) // first: what took an hour is seen whatever comes
		if *to != "" {
			err = errors.Join(err, page.Write(*to, report))
		}
		return err
	}
	c.RunE = func(c *cobra.Command, _ []string) (err error) {
		if *from != "" {
			if only := onlyWith(c, "from", "report", "output"); only != "" {
				return misuse{fmt.Errorf("--from measures nothing, so --%s has no effect", only)}
			}
			report, err := page.Read(*from)
			if err != nil {
				return err
			}
			return publish(report)
		}
		if o.Program == "" {
			own, err := os.Executable()
			if err != nil {
				return err
			}
			o.Program = filepath.Join(filepath.Dir(own), "sandpit")
		}
		if _, err := os.Stat(o.Program); err != nil {
			return fault.Wrap(fault.NotFound, err, "the server's program is not there").
				WithRemedy("build it (make build) beside this one, or name one with --program")
		}
		if f.Changed("peers") && o.Peers == nil {
			o.Peers = []string{}
		}
		if err := o.Check(); err != nil {
			return misuse{err}
		}
		if *to != "" {
			if err := page.Prepare(*to); err != nil {
				return err
			}
		}
		o.Progress = stderr
		report, err := bench.Run(c.Context(), o)
		if report == nil {
			return err
		}
		return errors.Join(publish(report), err)
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

// imagesOf returns where a server with this environment has its images.
func imagesOf(getenv func(string) string) string {
	data := cmp.Or(getenv("SANDPIT_DATA"), "/var/lib/sandpit")
	return cmp.Or(getenv("SANDPIT_IMAGES"), filepath.Join(data, "images"))
}
