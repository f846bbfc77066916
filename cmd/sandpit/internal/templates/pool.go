// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/cmd/sandpit/internal/flags"
	"sandpit.dev/cmd/sandpit/internal/output"
)

// Pool returns the command about the pools of an image.
func (a App) Pool() *cobra.Command {
	c := &cobra.Command{
		Use:   "pool [flags] NAME",
		Short: "Show the pools of an image, sandboxes that run before anybody asks, or change one",
		Long: `Show the pools of an image: sandboxes that run before anybody asks. With --min, --max, --refill, --template, --size
or a limit the pool of the image's name, or of --pool, is changed, or made, from now on and also after a restart
of the server.`,
		Example: `  sandpit image pool python
  sandpit image pool python --min 2 --max 8
  sandpit image pool python --pool big --size large --min 1`,
		Args: a.Takes(1, 1), ValidArgsFunction: a.Images,
	}
	f := c.Flags()
	least, most, refill := f.Int("min", 0, "so many are kept ready"), f.Int("max", 0, "so many where more are asked for; 0: none"), f.Int("refill", 0, "so many are made at a time")
	template, pool := f.String("template", "", "a template for all projects, whose limits they have"), f.String("pool", "", "the pool's name; the default is the template's, or the image's")
	size, cpu, pids := f.String("size", "", "CPU and memory by name: small, medium or large; see sandpit limits"), f.Float64("cpu", 0, "CPU cores (0.5, 2)"), f.Int("pids", 0, "most processes and threads")
	var memory, disk flags.Megabytes
	f.Var(&memory, "memory", "memory (512M, 2G)")
	f.Var(&disk, "disk", "disk (1G)")
	_ = c.RegisterFlagCompletionFunc("size", a.Size)
	how := output.ListFlags(c, "names only")
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		var found *v1.ImagePools
		if slices.ContainsFunc([]string{"min", "max", "refill", "template", "size", "cpu", "memory", "disk", "pids"}, f.Changed) {
			found, err = cl.UpdateImagePool(c.Context(), args[0], v1.UpdateImagePool{
				Min: flags.Given(f, "min", *least), Max: flags.Given(f, "max", *most), Refill: flags.Given(f, "refill", *refill),
				Template: flags.Given(f, "template", *template), Pool: flags.Given(f, "pool", *pool),
				Size: flags.Given(f, "size", *size), CPUCores: flags.Given(f, "cpu", *cpu), MemoryMB: memory.Value(), DiskMB: disk.Value(), Pids: flags.Given(f, "pids", *pids),
			})
		} else {
			found, err = cl.ImagePool(c.Context(), args[0])
		}
		if err != nil {
			return err
		}
		return output.List(a.Out, how, found.Pools, func(p v1.ImagePool) string { return p.Name }, output.Columns[v1.ImagePool]{
			Head: []string{"POOL", "IMAGE", "TEMPLATE", "MIN", "MAX", "REFILL", "READY", "MAKING", "HITS", "MISSES"},
			Row: func(p v1.ImagePool, _ time.Time) []string {
				n := strconv.Itoa
				return []string{p.Name, p.Image, p.Template, n(p.Min), n(p.Max), n(p.Refill), n(p.Ready), n(p.Making), strconv.FormatInt(p.Hits, 10), strconv.FormatInt(p.Misses, 10)}
			},
		})
	}
	return c
}
