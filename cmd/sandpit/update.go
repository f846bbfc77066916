// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	v1 "sandpit.dev/api/v1"
)

func newUpdate(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:     "update [flags] SANDBOX...",
		Aliases: []string{"set"},
		Short:   "Change limits, clocks, variables and labels of sandboxes",
		Long: `Change limits, clocks, variables and labels of sandboxes, also of ones that run. What is not said stays as
it is; of variables, labels and volumes the whole is given anew. Volumes can change only while a sandbox is
stopped. A memory limit under what is in use is refused.`,
		Example: `  sandpit update web --memory 4G --cpu 2
  sandpit update web --idle-timeout 2h --idle-action pause
  sandpit update web --ttl 8h --ttl-mode sliding`,
		Args:              takes(1, -1),
		ValidArgsFunction: a.completeAll,
	}
	var (
		f            = c.Flags()
		cpu          = f.Float64("cpu", 0, "CPU cores (0.5, 2)")
		pids         = f.Int("pids", 0, "most processes and threads")
		memory, disk megabytes
		labels       = pairs{}
		volumes      mounts
	)
	f.Var(&memory, "memory", "memory (512M, 2G)")
	f.Var(&disk, "disk", "disk (1G)")
	env := a.envFlags(f, "environment variable of commands that are begun from now on")
	f.Var(labels, "label", "label to find it by; may be given again")
	f.VarP(&volumes, "volume", "v", "mount a volume: NAME:PATH, NAME/SUB:PATH or NAME:PATH:ro; may be given again")
	noVolumes := f.Bool("no-volumes", false, "mount none any more")
	_ = c.RegisterFlagCompletionFunc("volume", a.completeMount)
	k := clockFlags(c)
	out := formatFlag(c)
	c.RunE = func(c *cobra.Command, refs []string) error {
		changes := 0
		f.Visit(func(f *pflag.Flag) {
			if f.Name != "output" {
				changes++
			}
		})
		if changes == 0 {
			return misuse(c, "nothing is to be changed; see the flags")
		}
		if *noVolumes && volumes != nil {
			return misuse(c, "--volume and --no-volumes contradict each other")
		}
		if *noVolumes {
			volumes = mounts{}
		}
		r := v1.UpdateSandbox{
			CPUCores: given(f, "cpu", *cpu), MemoryMB: memory.value(), DiskMB: disk.value(), Pids: given(f, "pids", *pids),
			Env: env.value(), Metadata: labels.value(), Volumes: volumes,
			IdleTimeoutSeconds: k.idle.seconds(), IdleAction: k.idleAction.value(), RetentionSeconds: k.retention.seconds(),
			AutoDelete: k.bool("auto-delete", k.autoDelete), TTLSeconds: k.ttl.seconds(), TTLMode: k.ttlMode.value(),
			AutoStart: k.bool("auto-start", k.autoStart), AutoResume: k.bool("auto-resume", k.autoResume), Checkpoints: k.checkpoints.value(),
		}
		cl, err := a.client()
		if err != nil {
			return err
		}
		return a.each(c.Context(), refs, *out, func(ctx context.Context, ref string) (*v1.Sandbox, error) {
			return cl.Update(ctx, ref, r)
		})
	}
	return c
}
