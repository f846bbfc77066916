// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/flags"
	"sandpit.dev/cmd/sandpit/internal/interrupt"
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
	volumes      flags.Mounts
	skills       []string
	network      string
	reach        *reach
	clocks       *flags.Clocks
}

func (a *app) makingFlags(c *cobra.Command) *making {
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
	f.Var(m.labels, "label", "label to find it by; may be given again")
	f.StringVar(&m.from, "from-snapshot", "", "begin with the disk of this snapshot: its id, or SANDBOX/NAME")
	f.VarP(&m.volumes, "volume", "v", "mount a volume: NAME:PATH, NAME/SUB:PATH or NAME:PATH:ro; may be given again")
	f.StringSliceVar(&m.skills, "skill", nil, "install this skill in it; may be given again")
	f.StringVar(&m.network, "network", "", "what it may reach: off, restricted or open")
	m.reach = a.reachFlags(c)
	m.clocks = flags.ClockFlags(c)
	_ = c.RegisterFlagCompletionFunc("image", a.completeImages)
	_ = c.RegisterFlagCompletionFunc("template", func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return a.templates().Names(c.Context()), cobra.ShellCompDirectiveNoFileComp
	})
	_ = c.RegisterFlagCompletionFunc("size", a.projects().CompleteSize)
	_ = c.RegisterFlagCompletionFunc("network", cobra.FixedCompletions([]string{"off", "restricted", "open"}, cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("from-snapshot", a.completeSnapshots)
	_ = c.RegisterFlagCompletionFunc("skill", a.completeSkills)
	_ = c.RegisterFlagCompletionFunc("volume", a.completeMount)
	return m
}

func (m *making) request() v1.CreateSandbox {
	f, k := m.c.Flags(), m.clocks
	return v1.CreateSandbox{
		Key: flags.Given(f, "name", m.key), Image: flags.Given(f, "image", m.image), Template: flags.Given(f, "template", m.template), Runtime: flags.Given(f, "runtime", m.runtime), ImageExact: flags.Given(f, "image-exact", m.exact), Size: flags.Given(f, "size", m.size), CPUCores: flags.Given(f, "cpu", m.cpu),
		MemoryMB: m.memory.Value(), DiskMB: m.disk.Value(), Pids: flags.Given(f, "pids", m.pids),
		Env: m.env.Value(), Metadata: m.labels.Value(), FromSnapshot: flags.Given(f, "from-snapshot", m.from), Volumes: m.volumes, Skills: m.skills,
		Network:            m.reach.policy(m.network),
		IdleTimeoutSeconds: k.Idle.Seconds(), IdleAction: k.IdleAction.Value(), RetentionSeconds: k.Retention.Seconds(), ArchiveAfterSeconds: k.Archive.Seconds(),
		AutoDelete: k.Bool("auto-delete", k.AutoDelete), TTLSeconds: k.Ttl.Seconds(), TTLMode: k.TtlMode.Value(),
		AutoStart: k.Bool("auto-start", k.AutoStart), AutoResume: k.Bool("auto-resume", k.AutoResume), Checkpoints: k.Checkpoints.Value(),
	}
}

func newCreate(a *app) *cobra.Command {
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
		Args: namedByFlag("sandbox"),
	}
	m := a.makingFlags(c)
	out := output.NamedFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		cl, err := a.client()
		if err != nil {
			return err
		}
		s, created, err := a.create(c.Context(), cl, m.request())
		if err != nil {
			return err
		}
		if !created && !out.IsData() {
			a.warn("%s existed already", s.Ref())
		}
		a.tellDiffers(s)
		return output.One(a.stdout, *out, s, s.Ref(), s.ID)
	}
	return c
}

// tellDiffers says where a sandbox that was there already is not what was asked for: by the flags
// that asked.
func (a *app) tellDiffers(s *v1.Sandbox) {
	var all []string
	for _, field := range s.Differs {
		if asked := givenBy(a.command, field); len(asked) > 0 {
			all = append(all, asked...)
		} else {
			all = append(all, field) // of a server that compares more than we know
		}
	}
	if len(all) > 0 {
		a.warn("it was left as it is, and is not what was asked for in: %s", strings.Join(all, ", "))
	}
}

// tellStart says what a sandbox was made of that did not say so itself, and why what it starts is
// not ready.
func (a *app) tellStart(s *v1.Sandbox) {
	t := s.Template
	if t == nil {
		return
	}
	if t.Name != nil && t.ChosenBy != "explicit" {
		a.warn("it is made of the template %s@%d (chosen by %s)", *t.Name, *t.Version, t.ChosenBy)
	}
	if t.Start == nil || t.Start.Ready == nil || *t.Start.Ready {
		return
	}
	a.warn("it runs, and what it starts is not ready: %s", t.Start.Reason)
	for line := range strings.Lines(t.Start.Output) {
		a.warn("  %s", strings.TrimSuffix(line, "\n"))
	}
}

func newTemplate(a *app) *cobra.Command { return templates.New(a.templates()) }

// templates is what the commands about templates need.
func (a *app) templates() templates.App {
	return templates.App{
		Client: a.client, Getenv: a.Getenv, Out: a.stdout, Err: a.stderr, Warn: a.warn, Takes: takes, Group: group, Each: a.eachName, Soon: a.soon, Images: a.completeImages, Size: a.projects().CompleteSize,
	}
}

// create makes a sandbox, and shows what it waits for where that is an image. An interrupt ends it: the
// server deletes then what it makes, unless that has a key.
func (a *app) create(ctx context.Context, cl *client.Client, r v1.CreateSandbox) (s *v1.Sandbox, created bool, err error) {
	ctx, stop := interrupt.Context(ctx)
	defer stop()
	done := a.showBuilds(ctx, cl)
	defer done()
	s, created, err = cl.Create(ctx, r)
	switch {
	case err != nil:
	case s.ImageNote != "":
		a.warn("%s; inside: %s", s.ImageNote, versionsText(s.Versions))
	case s.AskedImage != "" && s.AskedImage != s.Image:
		a.warn("the image %q is %q here: %s", s.AskedImage, s.Image, versionsText(s.Versions))
	}
	if err == nil {
		a.tellStart(s)
	}
	return s, created, interrupt.Ended(ctx, err)
}
