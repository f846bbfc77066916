// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package projects has the commands about projects, and about what the caller's may have.
package projects

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/output"
)

// App is what the commands need of the program.
type App struct {
	Client func() (*client.Client, error)
	Out    io.Writer
	Takes  func(least, most int) cobra.PositionalArgs
	Group  func(*cobra.Command, []string) error
	Each   func(names []string, do func(string) error) error
	Soon   func(context.Context, func(context.Context, *client.Client) ([]string, error)) []string
}

// New returns the group of commands.
func New(a App) *cobra.Command {
	c := &cobra.Command{
		Use:   "project",
		Short: "Keep projects and their quotas",
		Long: `Keep projects and their quotas. All that there is belongs to a project; making a token for one that there is
not makes it. To make, change and delete projects is for the server's own administrator's token, which lists
all of them; another token sees its own.

QUOTA is sandboxes, running, cpu_cores, memory_mb, processes, disk_mb, snapshots, volumes, commands_per_day,
cpu_seconds_per_month or memory_gib_seconds_per_month; 0 is no bound. One below what is used refuses more, and ends nothing.`,
		Args: cobra.ArbitraryArgs,
		RunE: a.Group,
	}
	c.AddCommand(a.create(), a.ls(), a.show(), a.set(), a.rm())
	return c
}

func (a App) create() *cobra.Command {
	c := &cobra.Command{
		Use: "create NAME [QUOTA=N...]", Short: "Make a project, with the operator's quotas for new ones where none is given",
		Example: `  sandpit project create web sandboxes=100 running=20 memory_mb=65536`,
		Args:    a.Takes(1, -1),
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		r := v1.CreateProject{Name: args[0]}
		var err error
		if len(args) > 1 {
			if r.Quotas, err = quotas(c, args[1:]); err != nil {
				return err
			}
		}
		cl, err := a.Client()
		if err != nil {
			return err
		}
		p, err := cl.CreateProject(c.Context(), r)
		if err != nil {
			return err
		}
		fmt.Fprintln(a.Out, p.Name)
		return nil
	}
	return c
}

func (a App) ls() *cobra.Command {
	c := &cobra.Command{Use: "ls [flags]", Aliases: []string{"list"}, Short: "List projects: what they use of what they may have", Args: a.Takes(0, 0)}
	how := output.ListFlags(c, "names only")
	c.RunE = func(c *cobra.Command, _ []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		all, err := cl.Projects(c.Context())
		if err != nil {
			return err
		}
		return output.List(a.Out, how, all, func(p v1.Project) string { return p.Name }, output.Columns[v1.Project]{
			Head: []string{"PROJECT", "SANDBOXES", "RUNNING", "CPU_CORES", "MEMORY_MB", "DISK_MB"},
			Row: func(p v1.Project, _ time.Time) []string {
				return append([]string{p.Name}, cells(p, "sandboxes", "running", "cpu_cores", "memory_mb", "disk_mb")...)
			},
			WideHead: []string{"PROCESSES", "SNAPSHOTS", "VOLUMES", "COMMANDS_PER_DAY", "CPU_SECONDS_PER_MONTH", "MEMORY_GIB_SECONDS_PER_MONTH", "CREATED", "BY"},
			WideRow: func(p v1.Project, now time.Time) []string {
				return append(cells(p, "processes", "snapshots", "volumes", "commands_per_day", "cpu_seconds_per_month", "memory_gib_seconds_per_month"), output.Ago(now, &p.CreatedAt), p.CreatedBy)
			},
		})
	}
	return c
}

func (a App) show() *cobra.Command {
	c := &cobra.Command{Use: "show [flags] PROJECT", Aliases: []string{"inspect"}, Short: "Show what a project may have, has and has left", Args: a.Takes(1, 1), ValidArgsFunction: a.complete}
	return a.one(c, func(ctx context.Context, cl *client.Client, args []string) (*v1.Project, []v1.Size, error) {
		p, err := cl.Project(ctx, args[0])
		return p, nil, err
	})
}

// Limits returns the command that shows the caller's own project.
func Limits(a App) *cobra.Command {
	c := &cobra.Command{
		Use: "limits [flags]", Short: "Show what your project may have, has and has left",
		Long: `Show what your project may have, has and has left: its quotas, which the server's administrator sets; and what
sizes there are. What one sandbox may ask for at most, "sandpit info" says.`,
		Args: a.Takes(0, 0),
	}
	return a.one(c, func(ctx context.Context, cl *client.Client, _ []string) (*v1.Project, []v1.Size, error) {
		l, err := cl.Limits(ctx)
		if err != nil {
			return nil, nil, err
		}
		if l.Project == nil {
			return nil, nil, fmt.Errorf("this server is older than quotas")
		}
		return l.Project, l.Sizes, nil
	})
}

// shown is a project, and maybe what sandboxes are to be asked for by.
type shown struct {
	*v1.Project
	Sizes []v1.Size `json:"sizes,omitempty"`
}

// one has a command show the project, and the sizes, that get gets.
func (a App) one(c *cobra.Command, get func(context.Context, *client.Client, []string) (*v1.Project, []v1.Size, error)) *cobra.Command {
	as := output.FormatFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		p, sizes, err := get(c.Context(), cl, args)
		if err != nil {
			return err
		}
		if as.IsData() {
			return output.Data(a.Out, *as, shown{p, sizes})
		}
		fmt.Fprintf(a.Out, "project %s\n", p.Name)
		var rows [][]string
		for _, name := range names() {
			used, quota, left := of(p.Used, name), of(p.Quotas, name), of(p.Left, name)
			if quota == "" {
				quota, left = "-", "-"
			}
			rows = append(rows, []string{name, used, quota, left})
		}
		if err := output.Table(a.Out, []string{"RESOURCE", "USED", "QUOTA", "LEFT"}, rows); err != nil || len(sizes) == 0 {
			return err
		}
		rows = nil
		for _, s := range sizes {
			rows = append(rows, []string{s.Name, strconv.FormatFloat(s.CPUCores, 'f', -1, 64), strconv.Itoa(s.MemoryMB)})
		}
		fmt.Fprintln(a.Out)
		return output.Table(a.Out, []string{"SIZE", "CPU_CORES", "MEMORY_MB"}, rows)
	}
	return c
}

// CompleteSize completes names of sizes.
func (a App) CompleteSize(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.Soon(c.Context(), func(ctx context.Context, cl *client.Client) (out []string, err error) {
		l, err := cl.Limits(ctx)
		if err != nil {
			return nil, err
		}
		for _, s := range l.Sizes {
			out = append(out, s.Name)
		}
		return out, nil
	}), cobra.ShellCompDirectiveNoFileComp
}

func (a App) set() *cobra.Command {
	c := &cobra.Command{
		Use: "set PROJECT QUOTA=N...", Short: "Change quotas of a project, all that are given or none",
		Example: `  sandpit project set web running=40 volumes=0`,
		Args:    a.Takes(2, -1), ValidArgsFunction: a.complete,
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		q, err := quotas(c, args[1:])
		if err != nil {
			return err
		}
		cl, err := a.Client()
		if err != nil {
			return err
		}
		p, err := cl.UpdateProject(c.Context(), args[0], v1.UpdateProject{Quotas: q})
		if err != nil {
			return err
		}
		for _, name := range names() {
			if v := of(*q, name); v != "" {
				fmt.Fprintf(a.Out, "%s=%s (%s used)\n", name, v, of(p.Used, name))
			}
		}
		return nil
	}
	return c
}

func (a App) rm() *cobra.Command {
	c := &cobra.Command{Use: "rm PROJECT...", Aliases: []string{"delete"}, Short: "Delete projects to which nothing belongs", Args: a.Takes(1, -1), ValidArgsFunction: a.complete}
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		return a.Each(args, func(name string) error { return cl.DeleteProject(c.Context(), name) })
	}
	return c
}

// names are those of the resources, in the order in which they are shown.
func names() []string {
	return []string{"sandboxes", "running", "cpu_cores", "memory_mb", "processes", "disk_mb", "snapshots", "volumes", "commands_per_day", "cpu_seconds_per_month", "memory_gib_seconds_per_month"}
}

// quotas reads arguments of the form QUOTA=N.
func quotas(c *cobra.Command, args []string) (*v1.Amounts, error) {
	given := make(map[string]json.Number, len(args))
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		if _, err := strconv.ParseFloat(value, 64); !ok || err != nil {
			return nil, exit.Misuse(c, "%q is not QUOTA=N, with a number; the quotas are %s", arg, strings.Join(names(), ", "))
		}
		given[name] = json.Number(value)
	}
	text, err := json.Marshal(given)
	if err != nil {
		return nil, exit.Misuse(c, "a number is not written as numbers are: %v", err)
	}
	out := new(v1.Amounts)
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(out); err != nil {
		return nil, exit.Misuse(c, "%s: the quotas are %s, and all but cpu_cores are whole numbers", strings.Join(args, " "), strings.Join(names(), ", "))
	}
	return out, nil
}

// of is an amount as it is shown; empty: there is none.
func of(a v1.Amounts, name string) string {
	if name == "cpu_cores" {
		if a.CPUCores == nil {
			return ""
		}
		return strconv.FormatFloat(*a.CPUCores, 'f', -1, 64)
	}
	for i, v := range []*int64{a.Sandboxes, a.Running, nil, a.MemoryMB, a.Processes, a.DiskMB, a.Snapshots, a.Volumes, a.CommandsPerDay, a.CPUSecondsPerMonth, a.MemoryGiBSecondsPerMonth} {
		if v != nil && names()[i] == name {
			return strconv.FormatInt(*v, 10)
		}
	}
	return ""
}

// Left says what quotas leave, in words; empty: there is no quota.
func Left(a *v1.Amounts) string {
	var out []string
	for _, name := range names() {
		if a == nil {
			break
		}
		if v := of(*a, name); v != "" {
			out = append(out, name+" "+v)
		}
	}
	return strings.Join(out, ", ")
}

// cells say what is used, and of how much.
func cells(p v1.Project, names ...string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = of(p.Used, name)
		if q := of(p.Quotas, name); q != "" {
			out[i] += "/" + q
		}
	}
	return out
}

// complete completes names of projects.
func (a App) complete(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.Soon(c.Context(), func(ctx context.Context, cl *client.Client) (out []string, err error) {
		all, err := cl.Projects(ctx)
		for _, p := range all {
			out = append(out, p.Name)
		}
		return out, err
	}), cobra.ShellCompDirectiveNoFileComp
}
