// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/flags"
	"sandpit.dev/cmd/sandpit/internal/images"
	"sandpit.dev/cmd/sandpit/internal/interrupt"
	"sandpit.dev/cmd/sandpit/internal/network"
	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/cmd/sandpit/internal/templates"
)

// making holds the flags of a new sandbox.
type making struct {
	c            *cobra.Command
	key, image   string
	template     string
	runtime      string
	exact        bool
	from         string
	size         string
	cpu          float64
	memory, disk flags.Megabytes
	pids         int
	env          *flags.Variables
	labels       flags.Pairs
	account      *flags.Account
	volumes      flags.Mounts
	skills       []string
	network      string
	reach        *network.Reach
	clocks       *flags.Clocks
}

func makingFlags(a *app.App, c *cobra.Command) *making {
	m := &making{c: c, labels: flags.Pairs{}}
	f := c.Flags()
	f.StringVar(&m.key, "name", "", "the sandbox's key: if it exists, that sandbox is used, started if need be")
	flags.KeyIsName(f)
	f.StringVar(&m.image, "image", "", "what to run on; see sandpit image ls")
	f.StringVar(&m.template, "template", "", "what it is made of: a template's name, NAME@VERSION or id; see sandpit template ls")
	f.StringVar(&m.runtime, "runtime", "", "what isolates it: native or docker, of those that the server has; see sandpit info")
	f.BoolVar(&m.exact, "image-exact", false, "refuse an image whose name says something else than what is inside")
	f.StringVar(&m.size, "size", "", "CPU and memory by name: small, medium or large; see sandpit limits")
	f.Float64Var(&m.cpu, "cpu", 0, "CPU cores (0.5, 2)")
	f.Var(&m.memory, "memory", "memory (512M, 2G)")
	f.Var(&m.disk, "disk", "disk (1G)")
	f.IntVar(&m.pids, "pids", 0, "most processes and threads")
	m.env = flags.EnvFlags(f, a.Getenv, "environment variable of every command")
	m.account = flags.AccountFlags(f)
	f.Var(m.labels, "label", "label to find it by; may be given again")
	f.StringVar(&m.from, "from-snapshot", "", "begin with the disk of this snapshot: its id, or SANDBOX/NAME")
	f.VarP(&m.volumes, "volume", "v", "mount a volume: NAME:PATH, NAME/SUB:PATH or NAME:PATH:ro; may be given again")
	f.StringSliceVar(&m.skills, "skill", nil, "install this skill in it; may be given again")
	f.StringVar(&m.network, "network", "", "what it may reach: off, restricted or open")
	m.reach = network.ReachFlags(a, c)
	m.clocks = flags.ClockFlags(c)
	_ = c.RegisterFlagCompletionFunc("image", a.CompleteImages)
	_ = c.RegisterFlagCompletionFunc("template", func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return templateCommands(a).Names(c.Context()), cobra.ShellCompDirectiveNoFileComp
	})
	_ = c.RegisterFlagCompletionFunc("size", projectCommands(a).CompleteSize)
	_ = c.RegisterFlagCompletionFunc("network", cobra.FixedCompletions([]string{"off", "restricted", "open"}, cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("from-snapshot", a.CompleteSnapshots)
	_ = c.RegisterFlagCompletionFunc("skill", a.CompleteSkills)
	_ = c.RegisterFlagCompletionFunc("volume", a.CompleteMount)
	return m
}

func (m *making) request() v1.CreateSandbox {
	f, k := m.c.Flags(), m.clocks
	return v1.CreateSandbox{
		Key: flags.Given(f, "name", m.key), Image: flags.Given(f, "image", m.image), Template: flags.Given(f, "template", m.template), Runtime: flags.Given(f, "runtime", m.runtime), ImageExact: flags.Given(f, "image-exact", m.exact), Size: flags.Given(f, "size", m.size), CPUCores: flags.Given(f, "cpu", m.cpu),
		MemoryMB: m.memory.Value(), DiskMB: m.disk.Value(), Pids: flags.Given(f, "pids", m.pids),
		Env: m.env.Value(), Metadata: m.labels.Value(), Account: m.account.Value(), User: m.account.User(), FromSnapshot: flags.Given(f, "from-snapshot", m.from), Volumes: m.volumes, Skills: m.skills,
		Network:            m.reach.Policy(m.network),
		IdleTimeoutSeconds: k.Idle.Seconds(), IdleAction: k.IdleAction.Value(), RetentionSeconds: k.Retention.Seconds(), ArchiveAfterSeconds: k.Archive.Seconds(),
		AutoDelete: k.Bool("auto-delete", k.AutoDelete), TTLSeconds: k.Ttl.Seconds(), TTLMode: k.TtlMode.Value(), OnExpiry: k.OnExpiry.Value(),
		AutoStart: k.Bool("auto-start", k.AutoStart), AutoResume: k.Bool("auto-resume", k.AutoResume), Checkpoints: k.Checkpoints.Value(), Sudo: k.Bool("sudo", k.Sudo),
	}
}

func newCreate(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "create [flags]",
		Short: "Create a sandbox and print its id",
		Long: `Create a sandbox and print its id.

With --name the call is safe to repeat: a sandbox with that key is given back, started if need be.
What is not said is the server's default.`,
		Example: `  sandpit create --name web --memory 2G --label team=data
  sandpit create --name copy --from-snapshot web/before
  sandpit create --volume data:/mnt/data:ro
  id=$(sandpit create)`,
		Args: app.NamedByFlag("sandbox"),
	}
	m := makingFlags(a, c)
	token := c.Flags().String("token", "", "make a token of this `NAME` that is good for the sandbox alone, and print it below the id")
	exists := c.Flags().String("if-exists", "get", "with --name: what is done where that sandbox exists: get, or refuse")
	_ = c.RegisterFlagCompletionFunc("if-exists", cobra.FixedCompletions([]string{"get", "refuse"}, cobra.ShellCompDirectiveNoFileComp))
	out := output.NamedFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		r := m.request()
		r.IfExists = flags.Given(c.Flags(), "if-exists", *exists)
		if c.Flags().Changed("token") {
			r.Token = &v1.CreateSandboxToken{Name: *token}
		}
		s, created, err := create(c.Context(), a, cl, r)
		if err != nil {
			return err
		}
		if !created && !out.IsData() {
			a.Warn("%s existed already", s.Ref())
		}
		tellDiffers(a, s)
		if err := output.One(a.Stdout, *out, s, s.Ref(), s.ID); err != nil || s.Token == nil || out.IsData() {
			return err
		}
		_, err = fmt.Fprintln(a.Stdout, s.Token.Secret)
		return err
	}
	return c
}

// tellDiffers says where a sandbox that was there already is not what was asked for: by the flags
// that asked.
func tellDiffers(a *app.App, s *v1.Sandbox) {
	var all []string
	for _, field := range s.Differs {
		if asked := app.GivenBy(a.Command, field); len(asked) > 0 {
			all = append(all, asked...)
		} else {
			all = append(all, field) // of a server that compares more than we know
		}
	}
	if len(all) > 0 {
		a.Warn("it was left as it is, and is not what was asked for in: %s", strings.Join(all, ", "))
	}
}

// tellStart says what a sandbox was made of that did not say so itself, and why what it starts is
// not ready.
func tellStart(a *app.App, s *v1.Sandbox) {
	t := s.Template
	if t == nil {
		return
	}
	if t.Name != nil && t.ChosenBy != "explicit" {
		a.Warn("it is made of the template %s@%d (chosen by %s)", *t.Name, *t.Version, t.ChosenBy)
	}
	if t.Start == nil || t.Start.Ready == nil || *t.Start.Ready {
		return
	}
	a.Warn("it runs, and what it starts is not ready: %s", t.Start.Reason)
	for line := range strings.Lines(t.Start.Output) {
		a.Warn("  %s", strings.TrimSuffix(line, "\n"))
	}
}

func newTemplate(a *app.App) *cobra.Command { return templates.New(templateCommands(a)) }

// templateCommands is what the commands about templates need.
func templateCommands(a *app.App) templates.App {
	return templates.App{
		Client: a.Client, Getenv: a.Getenv, Out: a.Stdout, Err: a.Stderr, Warn: a.Warn, Takes: app.Takes, Group: app.Group, Each: a.EachName, Soon: a.Soon, Images: a.CompleteImages, Size: projectCommands(a).CompleteSize,
	}
}

// create makes a sandbox, and shows what it waits for where that is an image. An interrupt ends it: the
// server deletes then what it makes, unless that has a key.
func create(ctx context.Context, a *app.App, cl *client.Client, r v1.CreateSandbox) (s *v1.Sandbox, created bool, err error) {
	ctx, stop := interrupt.Context(ctx)
	defer stop()
	done := images.ShowBuilds(ctx, a, cl)
	defer done()
	s, created, err = cl.Create(ctx, r)
	switch {
	case err != nil:
	case s.ImageNote != "":
		a.Warn("%s; inside: %s", s.ImageNote, images.VersionsText(s.Versions))
	case s.AskedImage != "" && s.AskedImage != s.Image:
		a.Warn("the image %q is %q here: %s", s.AskedImage, s.Image, images.VersionsText(s.Versions))
	}
	if err == nil {
		tellStart(a, s)
	}
	return s, created, interrupt.Ended(ctx, err)
}
