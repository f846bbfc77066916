// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"sandpit.dev/client"
	"sandpit.dev/daemon"
	"sandpit.dev/fault"
	"sandpit.dev/internal/running"
)

// logName is the server's log in its data directory, when up started it.
const logName = "server.log"

// Times of starting a server.
const (
	startPoll  = 50 * time.Millisecond
	startBound = 2 * time.Minute // the repair after a crash may take a while
)

func newUp(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "up [flags]",
		Short: "Start a server in the background, and say how to connect to it",
		Long: `Start a server in the background, wait until it is ready and its default image is built, and say how
to connect to it. Where one runs already it is left as it is. "sandpit down" ends it. Its log is server.log in
the data directory.`,
		Args: takes(0, 0),
	}
	flags := addServerFlags(c)
	try := c.Flags().Bool("try", false, "also run a first program, in a sandbox named hello")
	c.RunE = func(c *cobra.Command, _ []string) error {
		cfg, err := flags.settings(a.getenv)
		if err != nil {
			return err
		}
		ctx, stop := interruptible(c.Context())
		defer stop()
		return interrupted(ctx, a.bringUp(ctx, cfg, flags, *try))
	}
	return c
}

func (a *app) bringUp(ctx context.Context, cfg daemon.Config, flags *serverFlags, try bool) error {
	if err := a.ensureServer(ctx, cfg, flags); err != nil {
		return err
	}
	p, err := a.locateStarted(cfg)
	if err != nil {
		return err
	}
	cl := a.clientOf(p)
	if err := a.ensureImage(ctx, cl); err != nil {
		return err
	}
	if try {
		if err := a.firstProgram(ctx, cl); err != nil {
			return err
		}
	}
	return a.howToConnect(p)
}

// ensureServer starts a server unless one answers.
func (a *app) ensureServer(ctx context.Context, cfg daemon.Config, flags *serverFlags) error {
	s, _, err := a.local()
	if err == nil && alive(s.PID) && ready(ctx, s.URL) {
		if flags.c.Flags().Changed("data") && s.Data != cfg.Data {
			return fault.New(fault.State, "a server with the data directory %s runs already, at %s", s.Data, s.URL).
				WithRemedy("end it first (sandpit down), or give this one a place of its own: SANDPIT_RUN_DIR=DIR sandpit up …")
		}
		_, err = fmt.Fprintf(a.stdout, "sandpit runs at %s already (process %d)\n", s.URL, s.PID)
		return err
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(cfg.Data, 0o700); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the data directory %s cannot be made", cfg.Data).
			WithRemedy("run as root, or choose another with --data")
	}
	path := filepath.Join(cfg.Data, logName)
	log, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "the server's log cannot be written").
			WithRemedy("run as root, or choose another data directory with --data")
	}
	defer log.Close()
	begin, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(program, flags.line(cfg)...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = "/"                                        // it must not keep a directory of ours busy
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it outlives our terminal
	if cfg.RunDir == "" {
		cfg.RunDir = running.Dir(os.Getuid(), "")
	}
	if err := cmd.Start(); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the server cannot be started")
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // ends with the server, or with us
	fmt.Fprintln(a.stderr, "starting the server…")
	return a.awaitStart(ctx, cfg, cmd.Process.Pid, ended, path, begin)
}

// awaitStart waits until the server that is process pid is ready. Its log began
// at begin.
func (a *app) awaitStart(ctx context.Context, cfg daemon.Config, pid int, ended <-chan error, path string, begin int64) error {
	limit := time.NewTimer(startBound)
	defer limit.Stop()
	tick := time.NewTicker(startPoll)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return fault.New(fault.Unavailable, "the server ended at once: %s", lastWords(path, begin)).
				WithRemedy("see %s, and what this host lacks: sandpit doctor", path)
		case <-limit.C:
			return fault.New(fault.Timeout, "the server (process %d) is not ready after %s", pid, startBound).WithRemedy("see %s", path)
		case <-ctx.Done():
			return ctx.Err() // the server goes on starting: down ends it
		case <-tick.C:
		}
		s, err := running.Read(cfg.RunDir)
		if err == nil && s.PID == pid && ready(ctx, s.URL) {
			_, err = fmt.Fprintf(a.stdout, "sandpit runs at %s (process %d, log %s)\n", s.URL, pid, path)
			return err
		}
	}
}

// lastWords are what a server said of why it ended.
func lastWords(path string, begin int64) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	const most = 64 << 10
	b, err := io.ReadAll(io.NewSectionReader(f, begin, most))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	last := len(lines) - 1
	if last > 0 && strings.HasPrefix(lines[last], "→") {
		return strings.TrimPrefix(lines[last-1], "sandpit: ") + " (" + lines[last] + ")"
	}
	return strings.TrimPrefix(lines[last], "sandpit: ")
}

// ready tells whether a server answers, and takes requests.
func ready(ctx context.Context, url string) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close() // only the status matters
	return resp.StatusCode == http.StatusOK
}

// locateStarted is locate for the server of this machine, whatever SANDPIT_URL
// says of others.
func (a *app) locateStarted(cfg daemon.Config) (place, error) {
	here := *a
	here.getenv = func(name string) string {
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
		return a.getenv(name)
	}
	return here.locate()
}

// ensureImage builds the default image, or waits for whoever does.
func (a *app) ensureImage(ctx context.Context, cl *client.Client) error {
	img, err := imageNamed(ctx, cl, "")
	if err != nil || img.Status == "ready" {
		return err
	}
	fmt.Fprintf(a.stderr, "preparing the image %s, once: this takes a minute or two…\n", img.Name)
	if _, err := cl.BuildImage(ctx, img.Name, 0); err != nil {
		return err
	}
	_, err = a.watchImage(ctx, cl, img.Name)
	return err
}

// howToConnect says what a user needs next.
func (a *app) howToConnect(p place) error {
	from := p.tokenFile
	if from == "" {
		from = "SANDPIT_ADMIN_TOKEN"
	}
	// The token is shown in full: it is the user's own, on the user's own
	// terminal, and a line that has to be completed by hand is no help.
	_, err := fmt.Fprintf(a.stdout, `
  API        %[1]s/v1 (described at %[1]s/v1/openapi.json)
  MCP        %[1]s/mcp
  token      in %[2]s

Add it to Claude Code:

  %[3]s

Other clients: sandpit mcp config. Try next:

  sandpit run python -c 'print(2 ** 100)'
  sandpit create --name lab && sandpit shell lab
  sandpit ls -a
`, p.url, from, claudeLine(p))
	return err
}
