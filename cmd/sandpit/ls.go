// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/flags"
	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/cmd/sandpit/internal/usage"
	"sandpit.dev/fault"
)

func newLs(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:     "ls [flags]",
		Aliases: []string{"list"},
		Short:   "List sandboxes",
		Long: `List sandboxes, the newest first: those that run or are paused, or with -a or a filter for the status all.

A filter is one of status=STATE, image=IMAGE, label=NAME=VALUE, and name=PART, which finds what has PART in its name or
id. Several statuses are one or the other; of others all have to hold. So do created-from=TIME, created-to, active-from, active-to, expires-from and
expires-to, with a time such as 2026-01-31 or how long ago (12h), and cpu-from=CORES, cpu-to, memory-from=SIZE, memory-to,
disk-from and disk-to.`,
		Example: `  sandpit ls --filter status=stopped --filter status=failed
  sandpit rm $(sandpit ls -q --filter name=test-)
  sandpit ls -a --filter active-to=7d --filter disk-from=1G --sort disk
  sandpit ls --format '{{.id}}\t{{.status}}'`,
		Args: app.Takes(0, 0),
	}
	all := c.Flags().BoolP("all", "a", false, "also those that are stopped, archived or failed")
	labels := flags.Pairs{}
	c.Flags().Var(labels, "label", "only those with this label; may be given again")
	var only filters
	c.Flags().VarP(&only, "filter", "f", "only those of which this holds, such as status=stopped; may be given again")
	_ = c.RegisterFlagCompletionFunc("filter", cobra.FixedCompletions(filterNames(), cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace))
	sortBy := c.Flags().String("sort", "created", "what they are listed by, the greatest or newest first: created, active, expires, cpu, memory or disk")
	reverse := c.Flags().BoolP("reverse", "r", false, "the least or oldest first")
	_ = c.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions(slices.Sorted(maps.Keys(sorts())), cobra.ShellCompDirectiveNoFileComp))
	how := output.ListFlags(c, "ids only")
	c.RunE = func(c *cobra.Command, _ []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		q := only.spans
		q.Status, q.Image, q.Metadata, q.Limit, q.Oldest = only.status, only.image, labels.Value(), app.ListPage, *reverse
		by, ok := sorts()[*sortBy]
		if !ok {
			return exit.Misuse(c, "--sort %s is not one of created, active, expires, cpu, memory and disk", *sortBy)
		}
		if c.Flags().Changed("sort") {
			q.SortBy = by
		}
		for name, value := range only.labels {
			labels[name] = value
			q.Metadata = labels
		}
		if len(only.names) > 0 {
			q.Search = only.names[0]
		}
		if !*all && len(q.Status) == 0 {
			q.Status = []string{"creating", "starting", "running", "pausing", "paused", "resuming", "restoring", "stopping", "archiving", "unarchiving"}
		}
		found, err := output.Collect(cl.List(c.Context(), q))
		if err != nil {
			return err
		}
		found = slices.DeleteFunc(found, func(s *v1.Sandbox) bool { return !only.named(s) })
		uses := make(map[string]*v1.SandboxStats)
		if how.Wide() {
			l, err := cl.AllStats(c.Context(), client.StatsQuery{})
			if err != nil && !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Unsupported) { // of an earlier server
				return err
			}
			for n := range l.Items {
				uses[l.Items[n].ID] = &l.Items[n]
			}
		}
		return output.List(a.Stdout, how, found, func(s *v1.Sandbox) string { return s.ID }, output.Columns[*v1.Sandbox]{
			Head: []string{"NAME", "ID", "STATUS", "IMAGE", "CPU", "MEMORY", "CREATED", "ACTIVE"},
			Row: func(s *v1.Sandbox, now time.Time) []string {
				status := s.Status
				if s.StopCause != "" && s.Status != "running" {
					status += " (" + s.StopCause + ")"
				}
				if s.UnresponsiveSince != nil {
					status += " (unresponsive)"
				}
				return []string{
					output.Text(s.Key), s.ID, status, s.Image, strconv.FormatFloat(s.CPUCores, 'g', 4, 64), strconv.Itoa(s.MemoryMB) + "M",
					output.Ago(now, &s.CreatedAt), output.Ago(now, s.LastActivityAt),
				}
			},
			WideHead: slices.Concat([]string{"RUNTIME", "DISK", "NETWORK", "EXPIRES"}, usedHeads(), []string{"LABELS"}),
			WideRow: func(s *v1.Sandbox, now time.Time) []string {
				var labels []string
				for _, name := range slices.Sorted(maps.Keys(s.Metadata)) {
					labels = append(labels, name+"="+s.Metadata[name])
				}
				disk := strconv.Itoa(s.DiskMB) + "M"
				if s.Archive != nil {
					disk += " (" + output.Bytes(s.Archive.SizeBytes) + " archived)"
				}
				return slices.Concat([]string{s.Runtime, disk, s.Network, output.Ago(now, s.ExpiresAt)}, usage.Cells(uses[s.ID]), []string{strings.Join(labels, ",")})
			},
			Called: func(s *v1.Sandbox) string { return s.Ref() },
		})
	}
	return c
}

// filters are the flag NAME=VALUE of a list that may be given again and again.
type filters struct {
	status, names []string
	image         string
	labels        map[string]string
	spans         client.ListQuery // the ends of spans alone
}

func filterNames() []string {
	names := []string{"status=", "name=", "image=", "label="}
	for _, of := range []string{"created", "active", "expires", "cpu", "memory", "disk"} {
		names = append(names, of+"-from=", of+"-to=")
	}
	return names
}

// sorts are the server's names of what a list is sorted by.
func sorts() map[string]string {
	return map[string]string{"created": "created_at", "active": "last_activity_at", "expires": "expires_at", "cpu": "cpu_cores", "memory": "memory_mb", "disk": "disk_mb"}
}

// span sets an end of a span, and reports whether name is that of one.
func (f *filters) span(name, value string) (is bool, err error) {
	q := &f.spans
	times := map[string]*time.Time{
		"created-from": &q.CreatedFrom, "created-to": &q.CreatedTo, "active-from": &q.ActivityFrom, "active-to": &q.ActivityTo,
		"expires-from": &q.ExpiresFrom, "expires-to": &q.ExpiresTo,
	}
	sizes := map[string]*int{"memory-from": &q.MemoryFrom, "memory-to": &q.MemoryTo, "disk-from": &q.DiskFrom, "disk-to": &q.DiskTo}
	cores := map[string]*float64{"cpu-from": &q.CPUFrom, "cpu-to": &q.CPUTo}
	switch {
	case times[name] != nil:
		at, ok := flags.Instant(time.Now(), value)
		if !ok {
			return true, fmt.Errorf("%s=%q is not a time: write 2026-01-31, 2026-01-31T12:00:00Z, or how long ago, as 12h or 7d", name, value)
		}
		*times[name] = at
	case sizes[name] != nil:
		var size flags.Megabytes
		if err := size.Set(value); err != nil {
			return true, fmt.Errorf("%s: %w", name, err)
		}
		*sizes[name] = *size.Value()
	case cores[name] != nil:
		n, err := strconv.ParseFloat(value, 64)
		if err != nil || !(n > 0) {
			return true, fmt.Errorf("%s=%q is not a number of cores", name, value)
		}
		*cores[name] = n
	default:
		return false, nil
	}
	return true, nil
}

func (f *filters) Type() string { return "NAME=VALUE" }

func (f *filters) String() string { return "" }

func (f *filters) Set(s string) error {
	name, value, ok := strings.Cut(s, "=")
	label, of, isPair := strings.Cut(value, "=")
	switch {
	case !ok || value == "":
	case strings.HasSuffix(name, "-from") || strings.HasSuffix(name, "-to"):
		if is, err := f.span(name, value); is {
			return err
		}
	case name == "status":
		f.status = append(f.status, strings.Split(value, ",")...)
		return nil
	case name == "name":
		f.names = append(f.names, value)
		return nil
	case name == "image" && (f.image == "" || f.image == value):
		f.image = value
		return nil
	case name == "image":
		return fmt.Errorf("nothing has the images %q and %q both", f.image, value)
	case name == "label" && isPair && label != "":
		if f.labels == nil {
			f.labels = make(map[string]string)
		}
		f.labels[label] = of
		return nil
	}
	return fmt.Errorf("%q is not a valid filter: use status=STATE, name=PART, image=IMAGE, label=NAME=VALUE, or an end such as created-from=TIME", s)
}

// named reports whether s has all the parts of a name that are asked for: the server finds the
// first, also in what is no name.
func (f *filters) named(s *v1.Sandbox) bool {
	for _, part := range f.names {
		if !strings.Contains(output.Text(s.Key), part) && !strings.Contains(s.ID, part) {
			return false
		}
	}
	return true
}

// usedHeads are the heads of what a sandbox uses, beside those of what it may.
func usedHeads() []string {
	out := usage.Heads()
	for n := range out {
		out[n] = "USED " + out[n]
	}
	return out
}
