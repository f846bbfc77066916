// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/flags"
	"sandpit.dev/cmd/sandpit/internal/output"
)

func newUpdate(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:     "update [flags] SANDBOX...",
		Aliases: []string{"set"},
		Short:   "Change limits, clocks, variables and labels of sandboxes",
		Long: `Change limits, clocks, variables and labels of sandboxes, also of ones that run. What is not said stays as
it is; of variables (but for --env-set and --env-unset), labels and volumes the whole is given anew. Volumes can change only while a sandbox is
stopped. A memory limit under what is in use is refused.`,
		Example: `  sandpit update web --memory 4G --cpu 2
  sandpit update web --idle-timeout 2h --idle-action pause
  sandpit update web --ttl 8h --ttl-mode sliding`,
		Args:              app.Takes(1, -1),
		ValidArgsFunction: a.CompleteAll,
	}
	var (
		f            = c.Flags()
		size         = f.String("size", "", "CPU and memory by name: small, medium or large; see sandpit limits")
		cpu          = f.Float64("cpu", 0, "CPU cores (0.5, 2)")
		pids         = f.Int("pids", 0, "most processes and threads")
		memory, disk flags.Megabytes
		labels       = flags.Pairs{}
		volumes      flags.Mounts
	)
	f.Var(&memory, "memory", "memory (512M, 2G)")
	f.Var(&disk, "disk", "disk (1G)")
	env := flags.EnvFlags(f, a.Getenv, "environment variable of commands that are begun from now on")
	envSet := flags.Pairs{}
	f.Var(envSet, "env-set", "variable to add or change; the others stay; may be given again")
	envUnset := f.StringSlice("env-unset", nil, "`NAME` of a variable to take away; may be given again")
	extend := f.Duration("extend", 0, "delete it no earlier than so long from now (2h), where it is to be deleted at a time")
	f.Var(labels, "label", "label to find it by; may be given again")
	f.VarP(&volumes, "volume", "v", "mount a volume: NAME:PATH, NAME/SUB:PATH or NAME:PATH:ro; may be given again")
	noVolumes := f.Bool("no-volumes", false, "mount none any more")
	_ = c.RegisterFlagCompletionFunc("volume", a.CompleteMount)
	_ = c.RegisterFlagCompletionFunc("size", projectCommands(a).CompleteSize)
	k := flags.ClockFlags(c)
	out := output.NamedFlag(c)
	c.RunE = func(c *cobra.Command, refs []string) error {
		changes := 0
		f.Visit(func(f *pflag.Flag) {
			if f.Name != "output" {
				changes++
			}
		})
		if changes == 0 {
			return exit.Misuse(c, "nothing is to be changed; see the flags")
		}
		if *noVolumes && volumes != nil {
			return exit.Misuse(c, "--volume and --no-volumes contradict each other")
		}
		if *noVolumes {
			volumes = flags.Mounts{}
		}
		r := v1.UpdateSandbox{
			Size: flags.Given(f, "size", *size), CPUCores: flags.Given(f, "cpu", *cpu), MemoryMB: memory.Value(), DiskMB: disk.Value(), Pids: flags.Given(f, "pids", *pids),
			Env: env.Value(), EnvSet: envSet.Value(), EnvUnset: *envUnset, Metadata: labels.Value(), Volumes: volumes,
			IdleTimeoutSeconds: k.Idle.Seconds(), IdleAction: k.IdleAction.Value(), RetentionSeconds: k.Retention.Seconds(), ArchiveAfterSeconds: k.Archive.Seconds(),
			AutoDelete: k.Bool("auto-delete", k.AutoDelete), TTLSeconds: k.Ttl.Seconds(), TTLMode: k.TtlMode.Value(), OnExpiry: k.OnExpiry.Value(),
			AutoStart: k.Bool("auto-start", k.AutoStart), AutoResume: k.Bool("auto-resume", k.AutoResume), Checkpoints: k.Checkpoints.Value(), Sudo: k.Bool("sudo", k.Sudo),
		}
		if f.Changed("extend") {
			r.ExtendTo = new(time.Now().Add(*extend))
		}
		cl, err := a.Client()
		if err != nil {
			return err
		}
		return a.Each(c.Context(), refs, *out, func(ctx context.Context, ref string) (*v1.Sandbox, error) {
			return cl.Update(ctx, ref, r)
		})
	}
	return c
}
