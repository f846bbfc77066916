// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/background"
	"sandpit.dev/cmd/sandpit/internal/images"
	"sandpit.dev/cmd/sandpit/internal/interrupt"
	"sandpit.dev/cmd/sandpit/internal/mcp"
	"sandpit.dev/cmd/sandpit/internal/place"
	"sandpit.dev/daemon"
	"sandpit.dev/fault"
	"sandpit.dev/internal/servers"
)

// startBound is how long a server may take to start: the repair after a crash may
// take a while.
const startBound = 2 * time.Minute

// NewUp returns the command that starts a server in the background. Create makes the sandbox of the first program.
func NewUp(a *app.App, create creator) *cobra.Command {
	c := &cobra.Command{
		Use:   "up [flags]",
		Short: "Start a server in the background, and say how to connect to it",
		Long: `Start a server in the background, wait until it is ready and its default image is built, and say how
to connect to it. Where one runs already it is left as it is. "sandpit down" ends it. Its log is server.log in
the data directory.`,
		Args: app.Takes(0, 0),
	}
	flags := addServerFlags(c)
	flags.addAdopt()
	try := c.Flags().Bool("try", false, "also run a first program, in a sandbox named hello")
	c.RunE = func(c *cobra.Command, _ []string) error {
		cfg, err := flags.settings(a.Getenv)
		if err != nil {
			return err
		}
		ctx, stop := interrupt.Context(c.Context())
		defer stop()
		return interrupt.Ended(ctx, bringUp(ctx, a, cfg, flags, create, *try))
	}
	return c
}

func bringUp(ctx context.Context, a *app.App, cfg daemon.Config, flags *serverFlags, create creator, try bool) error {
	s, started, err := launcher(a, cfg, flags).Ensure(ctx, startBound)
	if err != nil {
		return err
	}
	if started {
		_, err = fmt.Fprintf(a.Stdout, "sandpit runs at %s (process %d, log %s)\n", s.URL, s.PID, filepath.Join(cfg.Data, background.LogName))
	} else {
		_, err = fmt.Fprintf(a.Stdout, "sandpit runs at %s already (process %d)\n", s.URL, s.PID)
	}
	if err != nil {
		return err
	}
	p, err := locateStarted(a, cfg)
	if err != nil {
		return err
	}
	cl := a.ClientOf(p)
	if err := ensureImage(ctx, a, cl); err != nil {
		return err
	}
	if try {
		if err := firstProgram(ctx, a, cl, create); err != nil {
			return err
		}
	}
	return howToConnect(a, p)
}

// locateStarted is locate for the server of this machine, whatever others are named.
func locateStarted(a *app.App, cfg daemon.Config) (place.Server, error) {
	here := &place.Finder{Server: servers.Local, Getenv: func(name string) string {
		switch name {
		case "SANDPIT_URL", "SANDPIT_TOKEN":
			return ""
		case "SANDPIT_ADMIN_TOKEN":
			return cfg.AdminToken
		case "SANDPIT_RUN_DIR":
			if cfg.RunDir != "" {
				return cfg.RunDir
			}
		}
		return a.Getenv(name)
	}}
	return here.Locate()
}

// ensureImage builds the default image, or waits for whoever does.
func ensureImage(ctx context.Context, a *app.App, cl *client.Client) error {
	img, err := images.Named(ctx, cl, "")
	if err != nil || img.Status == "ready" {
		return err
	}
	fmt.Fprintf(a.Stderr, "preparing the image %s, once: this takes a minute or two…\n", img.Name)
	if _, err := cl.BuildImage(ctx, img.Name, 0); err != nil {
		return err
	}
	_, err = images.Watch(ctx, a, cl, img.Name)
	return err
}

// howToConnect says what a user needs next.
func howToConnect(a *app.App, p place.Server) error {
	from := p.TokenFile
	if from == "" {
		from = "SANDPIT_ADMIN_TOKEN"
	}
	other, err := a.Chosen()
	elsewhere := err == nil && other.URL != "" && place.Tidy(other.URL) != p.URL
	flags := ""
	if elsewhere {
		flags = " --server " + servers.Local
	}
	_, err = fmt.Fprintf(a.Stdout, `
  API        %[1]s/v1 (described at %[1]s/v1/openapi.json)
  MCP        %[1]s/mcp
  token      in %[2]s

Add it to Claude Code:

  %[3]s

Other clients: sandpit mcp config. Try next:

  sandpit run python -c 'print(2 ** 100)'
  sandpit create --name lab && sandpit shell lab
  sandpit ls -a
`, p.URL, from, mcp.ClaudeLine(flags))
	if err != nil {
		return err
	}
	if elsewhere {
		a.Warn("commands use the server at %s, and not this one, until %s", other.URL, other.Until())
	}
	return nil
}

// helloKey names the sandbox of the first program.
const helloKey = "hello"

// helloProgram shows where it runs, and that what it leaves behind stays.
const helloProgram = `
import os, pathlib, platform

runs = pathlib.Path("/workspace/runs")
count = int(runs.read_text()) + 1 if runs.exists() else 1
runs.write_text(str(count))
print(f"Hello from Python {platform.python_version()} in the sandbox {platform.node()}.")
print(f"I am uid {os.getuid()} and process {os.getpid()}; there is no network; run {count} of this program.")
print("2 ** 127 - 1 =", 2 ** 127 - 1)
`

// firstProgram runs a program in a sandbox and prints what it says.
func firstProgram(ctx context.Context, a *app.App, cl *client.Client, create creator) error {
	s, _, err := create(ctx, cl, v1.CreateSandbox{Key: new(helloKey)})
	if err != nil {
		return err
	}
	out, err := cl.Exec(ctx, s.ID, v1.Exec{Argv: []string{"python", "-c", helloProgram}})
	if err != nil {
		return err
	}
	if out.ExitCode == nil || *out.ExitCode != 0 {
		return fault.New(fault.Internal, "the first program did not work: %s", out.Stderr).
			WithRemedy("look into the sandbox: sandpit shell %s", helloKey)
	}
	_, err = fmt.Fprintf(a.Stdout, "\nA first program, in a sandbox that was made for it (%d ms):\n\n%s", out.DurationMS, out.Stdout)
	return err
}
