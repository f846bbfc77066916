// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/cmd/sandpit/internal/place"
	"sandpit.dev/daemon"
	"sandpit.dev/internal/servers"
)

// NewDoctor returns the command that looks at this host.
func NewDoctor(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "doctor [flags]",
		Short: "Say what this host can and cannot do, and how to mend it",
		Long: `Say what this host can and cannot do, and how to mend it. No server is needed; where one runs it is
asked too, else the runtime is tried out in a temporary directory beside the data directory, as root.
The exit status is 1 if sandboxes cannot run here.

With --server the server of that name, or at that URL, is asked instead what it finds of itself and of its own host
(local: this machine's); nothing of this host is looked at. That takes the server's own administrator's token.

With --repair it looks for what is wrong with the data directory and with what its last server left on
the host, and mends it: processes, cgroups, sockets and loop devices that no server could find again,
sandboxes that run though the records say that they do not, and files that others could write. It touches nothing of anybody else's, no disk and no record. The exit
status is then 1 if something is left to mend.`,
		Example: `  sandpit doctor
  sandpit doctor --server local
  sandpit doctor --server https://sandpit.example.org -o json`,
		Args: app.Takes(0, 0),
	}
	data := c.Flags().String("data", "", "the data directory to look at")
	config := c.Flags().String("config", "", "the server's YAML file with settings (default: SANDPIT_CONFIG)")
	repair := c.Flags().Bool("repair", false, "mend what is wrong with the data directory; the server has to be down")
	out := output.FormatFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if a.Server != "" {
			if *data != "" || *config != "" || *repair {
				return exit.Misuse(c, "the flags --data, --config and --repair of sandpit doctor are for this machine: a server that is asked takes none of them")
			}
			return doctorOf(c.Context(), a, *out)
		}
		cfg := daemon.DefaultConfig()
		file := cmp.Or(*config, a.Getenv("SANDPIT_CONFIG"))
		if file != "" {
			if err := cfg.ReadFile(file); err != nil {
				return err
			}
		}
		if err := cfg.ReadEnv(a.Getenv); err != nil {
			return err
		}
		if *data != "" {
			cfg.Data = *data
		}
		if err := cfg.Check(); err != nil {
			return err
		}
		s, _, err := a.Local()
		up := err == nil && place.Alive(s.PID)
		switch {
		case !up:
		case *data == "" && file == "":
			cfg.Data = s.Data
		default:
			up = sameFile(cfg.Data, s.Data) // else that server has nothing to say of it
		}
		var checks []daemon.Check
		if *repair {
			checks = daemon.Repair(c.Context(), cfg, true)
		} else {
			checks = daemon.Doctor(c.Context(), cfg, !up)
			if at := a.Getenv("SANDPIT_URL"); up || at != "" {
				checks = append(checks, askServer(c.Context(), a, at == "")...)
			} else {
				checks = append(checks, daemon.Repair(c.Context(), cfg, false)...)
			}
		}
		if out.IsData() {
			if err := output.Data(a.Stdout, *out, checks); err != nil {
				return err
			}
		}
		bad := false
		for _, k := range checks {
			bad = bad || k.Status == daemon.Failed || *repair && k.Status != daemon.Passed
			if !out.IsData() {
				printFinding(a, v1.Finding{Name: k.Name, Status: string(k.Status), Detail: k.Detail, Remedy: k.Remedy}, k.Done)
			}
		}
		if bad {
			return &exit.Error{Status: exit.StatusFailed}
		}
		return nil
	}
	return c
}

// sameFile reports whether two paths lead to the same file.
func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// askServer returns what a running server says of its host: this machine's own, or that of SANDPIT_URL.
func askServer(ctx context.Context, a *app.App, own bool) []daemon.Check {
	failed := func(err error) []daemon.Check {
		return []daemon.Check{{Name: "server", Status: daemon.Warned, Detail: output.Whole(err)}}
	}
	asks := &place.Finder{Getenv: a.Getenv}
	if own {
		asks.Server = servers.Local
	}
	p, err := asks.Locate()
	if err != nil {
		return failed(err)
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	info, err := a.ClientOf(p).Info(ctx)
	if err != nil {
		return failed(err)
	}
	checks := []daemon.Check{{
		Name: "server", Status: daemon.Passed,
		Detail: fmt.Sprintf("version %s at %s, since %s", info.Version, p.URL, info.StartedAt.Local().Format(time.DateTime)),
	}}
	for _, p := range info.Pools {
		k := daemon.Check{
			Name: "pool/" + p.Name, Status: daemon.Passed,
			Detail: fmt.Sprintf("%d of %d ready; %d creates got one, %d found none", p.Ready, p.Target, p.Hits, p.Misses),
		}
		if p.Ready == 0 && p.Target > 0 {
			k.Status, k.Remedy = daemon.Warned, "see the server's log if it stays so; creates are slower meanwhile"
		}
		checks = append(checks, k)
	}
	for _, r := range info.Runtimes {
		if r.Error != "" {
			checks = append(checks, daemon.Check{Name: r.Name, Status: daemon.Failed, Detail: r.Error})
		}
		for _, name := range slices.Sorted(maps.Keys(r.Capabilities)) {
			c := r.Capabilities[name]
			k := daemon.Check{Name: r.Name + "/" + name, Status: daemon.Passed, Detail: "works"}
			if !c.Supported {
				k.Status, k.Detail, k.Remedy = daemon.Warned, c.Reason, c.Remedy
				if name == "isolation" {
					k.Status = daemon.Failed
				}
			}
			checks = append(checks, k)
		}
	}
	return checks
}
