// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package templates has the commands about templates, and about the pools of images.
package templates

import (
	"context"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/flags"
	"sandpit.dev/cmd/sandpit/internal/interrupt"
	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/fault"
)

// App is what the commands need of the program.
type App struct {
	Client func() (*client.Client, error)
	Getenv func(string) string
	Out    io.Writer
	Err    io.Writer
	Warn   func(format string, args ...any)
	Takes  func(least, most int) cobra.PositionalArgs
	Group  func(*cobra.Command, []string) error
	Each   func(names []string, do func(string) error) error
	Soon   func(context.Context, func(context.Context, *client.Client) ([]string, error)) []string
	Images cobra.CompletionFunc
	Size   cobra.CompletionFunc
}

// New returns the group of commands.
func New(a App) *cobra.Command {
	c := &cobra.Command{
		Use:   "template",
		Short: "Keep templates: an image or a disk, with defaults for sandboxes and what they start",
		Long: `Keep templates: an image or a disk, with defaults for the sandboxes that are made of it, and a command that
runs in them from each start on. A template has a name and versions; a version never changes. TEMPLATE is a
name (its newest version that is ready), NAME@VERSION or an id.`,
		Args: cobra.ArbitraryArgs,
		RunE: a.Group,
	}
	c.AddCommand(a.create(), a.Ls(), a.show(), a.logs(), a.activate("activate", "Have sandboxes be made of a template again, of a version or by a name of all of them", false), a.activate("deactivate", "Have no sandbox be made of a template, of a version or by a name of all of them; those that were made of it go on", true), a.byDefault(), a.rm())
	return c
}

func (a App) create() *cobra.Command {
	c := &cobra.Command{
		Use:   "create [flags] NAME",
		Short: "Add a version of a template and print it as NAME@VERSION",
		Long: `Add a version of a template and print it as NAME@VERSION. The same as its newest version is that one.

With --step commands are done as root, in order, in a sandbox of the image, and the disk that they make is
what sandboxes of the template begin with. The command waits for them; with --detach it does not. They reach
what --network says.`,
		Example: `  sandpit template create web --image python --start 'python3 -m http.server 8000' --ready-port 8000
  sandpit template create lab --network open --step 'pip install polars' --step 'python3 -c "import polars"'
  sandpit template create good --snapshot web/before`,
		Args: a.Takes(1, 1),
	}
	f := c.Flags()
	r := v1.CreateTemplate{}
	text := func(name, usage string) *string { return f.String(name, "", usage) }
	description, image, snapshot := text("description", "what it is for"), text("image", "what its sandboxes run on; see sandpit image ls"), text("snapshot", "begin with the disk of this snapshot, which has a name: its id, or SANDBOX/NAME")
	size := text("size", "CPU and memory by name: small, medium or large; see sandpit limits")
	cpu := f.Float64("cpu", 0, "CPU cores (0.5, 2)")
	var memory, disk flags.Megabytes
	f.Var(&memory, "memory", "memory (512M, 2G)")
	f.Var(&disk, "disk", "disk (1G)")
	pids := f.Int("pids", 0, "most processes and threads")
	env := flags.EnvFlags(f, a.Getenv, "environment variable of every command")
	account := flags.AccountFlags(f)
	network := text("network", "what its sandboxes may reach: off, restricted or open")
	domains := f.StringSlice("allow-domain", nil, "a name or a preset that they may reach; may be given again")
	var volumes flags.Mounts
	f.VarP(&volumes, "volume", "v", "mount a volume: NAME:PATH, NAME/SUB:PATH or NAME:PATH:ro; may be given again")
	start := text("start", "a shell command that runs in a sandbox from each start on")
	readyCommand := text("ready-command", "it is ready once this command ends with 0")
	readyPort := f.Int("ready-port", 0, "it is ready once something listens on this port")
	var timeout, interval flags.Period
	f.Var(&timeout, "ready-timeout", "after this it is not ready; the default is 1m")
	f.Var(&interval, "ready-interval", "from one look to the next; the default is 500ms")
	f.StringSliceVar(&r.ForSkills, "for-skill", nil, "a create with this skill, and without an image or a template, gets it; may be given again")
	f.StringArrayVar(&r.Steps, "step", nil, "a shell command that is done as root to make its disk; may be given again")
	f.BoolVar(&r.Default, "default", false, "make it the default of the project, or of the server")
	f.BoolVar(&r.Server, "all-projects", false, "for all projects; of the server's administrator")
	detach := f.Bool("detach", false, "do not wait for the steps")
	_ = c.RegisterFlagCompletionFunc("image", a.Images)
	_ = c.RegisterFlagCompletionFunc("size", a.Size)
	out := output.NamedFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		r.Name = args[0]
		r.Description, r.Image, r.FromSnapshot = flags.Given(f, "description", *description), flags.Given(f, "image", *image), flags.Given(f, "snapshot", *snapshot)
		r.Size, r.CPUCores, r.MemoryMB, r.DiskMB, r.Pids = flags.Given(f, "size", *size), flags.Given(f, "cpu", *cpu), memory.Value(), disk.Value(), flags.Given(f, "pids", *pids)
		r.Account, r.User = account.Value(), account.User()
		r.Env, r.Volumes, r.Start = env.Value(), volumes, flags.Given(f, "start", *start)
		switch {
		case len(*domains) > 0 && *network != "" && *network != "restricted":
			return exit.Misuse(c, "--allow-domain goes with --network restricted, and --network says %s", *network)
		case len(*domains) > 0:
			r.Network = allowed(*domains)
		case *network != "":
			r.Network = *network
		}
		if f.Changed("ready-command") || f.Changed("ready-port") || f.Changed("ready-timeout") || f.Changed("ready-interval") {
			r.Ready = &v1.ReadyProbe{Command: *readyCommand, Port: *readyPort, TimeoutSeconds: timeout.ExactSeconds(), IntervalSeconds: interval.ExactSeconds()}
		}
		cl, err := a.Client()
		if err != nil {
			return err
		}
		ctx, stop := interrupt.Context(c.Context())
		defer stop()
		t, added, err := cl.CreateTemplate(ctx, r)
		if err != nil {
			return interrupt.Ended(ctx, err)
		}
		if !added && !out.IsData() {
			a.Warn("%s is the same, and was there already", ref(t))
		}
		if t.Status == "building" && !*detach {
			a.Warn("doing %s; it goes on in the server whether one waits or not", output.Plural(len(t.Steps), "step"))
			if t, err = cl.AwaitTemplate(ctx, t.ID); err != nil {
				return interrupt.Ended(ctx, err)
			}
		}
		if err := output.One(a.Out, *out, t, ref(t), ref(t)); err != nil {
			return err
		}
		return a.failure(t)
	}
	return c
}

// allowed is a policy of names, and of presets, which have no dot.
func allowed(names []string) v1.NetworkPolicy {
	p := v1.NetworkPolicy{Mode: "restricted"}
	for _, n := range names {
		if strings.ContainsRune(n, '.') {
			p.AllowDomains = append(p.AllowDomains, n)
		} else {
			p.AllowPresets = append(p.AllowPresets, n)
		}
	}
	return p
}

// failure returns the error of a template that could not be built, after what its step wrote.
func (a App) failure(t *v1.Template) error {
	if t.Failure == nil {
		return nil
	}
	for line := range strings.Lines(t.Failure.Output) {
		_, _ = io.WriteString(a.Err, output.Printable(strings.TrimSuffix(line, "\n"))+"\n")
	}
	where := ""
	if t.Failure.Step > 0 {
		where = "step " + strconv.Itoa(t.Failure.Step) + ": "
	}
	return fault.New(fault.State, "%s could not be built: %s%s", ref(t), where, t.Failure.Reason).WithRemedy("mend the step, and create the next version")
}

func ref(t *v1.Template) string { return t.Name + "@" + strconv.Itoa(t.Version) }

// Ls returns the command that lists templates.
func (a App) Ls() *cobra.Command {
	c := &cobra.Command{
		Use: "ls [flags] [NAME]", Aliases: []string{"list"}, Short: "List the templates of the project and of the server: of each the newest version",
		Args: a.Takes(0, 1), ValidArgsFunction: a.complete,
	}
	all := c.Flags().BoolP("all", "a", false, "all versions; of a NAME they are listed anyway")
	how := output.ListFlags(c, "names only")
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		found, err := cl.Templates(c.Context(), strings.Join(args, ""))
		if err != nil {
			return err
		}
		if !*all && len(args) == 0 {
			found = newest(found)
		}
		return output.List(a.Out, how, found, func(t v1.Template) string { return ref(&t) }, output.Columns[v1.Template]{
			Head: []string{"TEMPLATE", "OF", "STATUS", "STARTS", "DEFAULT", "CREATED", "DESCRIPTION"},
			Row: func(t v1.Template, now time.Time) []string {
				of, whose := t.Image, ""
				if t.FromSnapshot != "" {
					of = "snapshot " + t.FromSnapshot
				}
				if of == "" {
					of = "the default image"
				}
				if t.Default {
					if whose = "project"; t.Server {
						whose = "server"
					}
				}
				return []string{ref(&t), of, t.Status, strings.Join(strings.Fields(t.Start), " "), whose, output.Ago(now, &t.CreatedAt), strings.Join(strings.Fields(t.Description), " ")}
			},
		})
	}
	return c
}

// newest returns the first of each name, of the project's and of the server's.
func newest(all []v1.Template) (out []v1.Template) {
	for _, t := range all {
		if n := len(out); n == 0 || out[n-1].Name != t.Name || out[n-1].Server != t.Server {
			out = append(out, t)
		}
	}
	return out
}

func (a App) show() *cobra.Command {
	c := &cobra.Command{Use: "show [flags] TEMPLATE", Short: "Show all that a template says", Args: a.Takes(1, 1), ValidArgsFunction: a.complete}
	out := output.FormatsFlag(c, output.AsYAML, output.AsYAML, output.AsJSON)
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		t, err := cl.Template(c.Context(), args[0])
		if err != nil {
			return err
		}
		return output.Data(a.Out, *out, t)
	}
	return c
}

func (a App) byDefault() *cobra.Command {
	c := &cobra.Command{
		Use:   "default [flags] TEMPLATE",
		Short: "Have sandboxes that name no image and no template be made of a template",
		Long: `Have sandboxes that name no image and no template be made of the newest version of a template: in the project,
or with --all-projects in those that have no default of their own.`,
		Args: a.Takes(1, 1), ValidArgsFunction: a.complete,
	}
	unset := c.Flags().Bool("unset", false, "not any more")
	server := c.Flags().Bool("all-projects", false, "as the server's default; of the server's administrator")
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		_, err = cl.UpdateTemplate(c.Context(), args[0], v1.UpdateTemplate{Default: new(!*unset), Server: *server})
		return err
	}
	return c
}

func (a App) rm() *cobra.Command {
	c := &cobra.Command{
		Use:   "rm TEMPLATE...",
		Short: "Delete versions of templates, or by a name all of its versions; sandboxes that were made of them stay",
		Args:  a.Takes(1, -1), ValidArgsFunction: a.complete,
	}
	c.RunE = func(c *cobra.Command, names []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		return a.Each(names, func(name string) error { return cl.DeleteTemplate(c.Context(), name) })
	}
	return c
}

// complete completes names of templates.
func (a App) complete(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.Names(c.Context()), cobra.ShellCompDirectiveNoFileComp
}

// Names returns the names of templates, for completion.
func (a App) Names(ctx context.Context) []string {
	return a.Soon(ctx, func(ctx context.Context, cl *client.Client) (out []string, err error) {
		found, err := cl.Templates(ctx, "")
		for _, t := range newest(found) {
			out = append(out, t.Name)
		}
		return out, err
	})
}
