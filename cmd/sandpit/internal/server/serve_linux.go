// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/background"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/mcp"
	"sandpit.dev/cmd/sandpit/internal/place"
	"sandpit.dev/daemon"
	"sandpit.dev/fault"
	"sandpit.dev/internal/mcpbridge"
)

// serverFlags are those of the commands that start a server.
type serverFlags struct {
	c                            *cobra.Command
	listen, data, images, config string
	envFile                      string
	level, form                  string
	adopt                        daemon.Adopt
}

func addServerFlags(c *cobra.Command) *serverFlags {
	s := &serverFlags{c: c}
	d := daemon.DefaultConfig()
	f := c.Flags()
	f.StringVar(&s.listen, "listen", d.Listen, "address to listen on; port 0 takes a free one")
	f.StringVar(&s.data, "data", d.Data, "directory of everything that lasts")
	f.StringVar(&s.images, "images", "", "directory of images (default: images in the data directory)")
	f.StringVar(&s.config, "config", "", "YAML file with settings")
	f.StringVar(&s.envFile, "env-file", "", "file of variables, NAME=VALUE a line; the environment's own go before them")
	f.StringVar(&s.level, "log-level", "info", "debug, info, warn or error")
	f.StringVar(&s.form, "log-format", d.Log.Format, "text or json")
	return s
}

// addAdopt has the flags that begin with a data directory which is refused otherwise.
func (s *serverFlags) addAdopt() {
	f := s.c.Flags()
	f.BoolVar(&s.adopt.Records, "new-records", false, "go on with the records that are there, or with new ones, though this installation had others")
	f.BoolVar(&s.adopt.Store, "new-store", false, "go on with the store of disks that is there, or with a new one, though this installation had another")
	f.BoolVar(&s.adopt.Copy, "new-id", false, "make a copy of a data directory an installation of its own")
}

// settings are the defaults, the file, the environment and the flags, the later
// over the earlier.
func (s *serverFlags) settings(getenv func(string) string) (daemon.Config, error) {
	cfg := daemon.DefaultConfig()
	f := s.c.Flags()
	if s.envFile != "" {
		var err error
		if getenv, err = daemon.ReadEnvFile(s.envFile, getenv); err != nil {
			return cfg, err
		}
	}
	path := s.config
	if path == "" {
		path = getenv("SANDPIT_CONFIG")
	}
	if path != "" {
		if err := cfg.ReadFile(path); err != nil {
			return cfg, err
		}
	}
	if err := cfg.ReadEnv(getenv); err != nil {
		return cfg, err
	}
	for name, to := range map[string]*string{"listen": &cfg.Listen, "data": &cfg.Data, "images": &cfg.Images.Dir, "log-format": &cfg.Log.Format} {
		if flag := f.Lookup(name); flag.Changed {
			*to = flag.Value.String()
		}
	}
	if f.Changed("log-level") {
		if err := cfg.Log.Level.UnmarshalText([]byte(s.level)); err != nil {
			return cfg, exit.Misuse(s.c, "--log-level: %q is not debug, info, warn or error", s.level)
		}
		cfg.NoteFlags()
	}
	return cfg, cfg.Check()
}

// line is the command line of a server with these flags, whose working directory
// is another.
func (s *serverFlags) line(cfg daemon.Config) []string {
	args := []string{"serve", "--data=" + cfg.Data, "--images=" + cfg.Images.Dir}
	for _, name := range []string{"listen", "log-level", "log-format", "new-records", "new-store", "new-id"} {
		if f := s.c.Flags().Lookup(name); f != nil && f.Changed {
			args = append(args, "--"+name+"="+f.Value.String())
		}
	}
	for name, file := range map[string]string{"config": s.config, "env-file": s.envFile} {
		if file == "" {
			continue
		}
		if abs, err := filepath.Abs(file); err == nil { // else it stays as it was given
			file = abs
		}
		args = append(args, "--"+name+"="+file)
	}
	return args
}

// Starter adds the flags of a server to c, and returns what starts one in the background
// unless one answers.
func Starter(a *app.App, c *cobra.Command) func(context.Context) error {
	flags := addServerFlags(c)
	return func(ctx context.Context) error {
		cfg, err := flags.settings(a.Getenv)
		if err != nil {
			return err
		}
		_, _, err = launcher(a, cfg, flags).Ensure(ctx, mcp.StartBound)
		return err
	}
}

// launcher returns what starts a server with these flags in the background.
func launcher(a *app.App, cfg daemon.Config, flags *serverFlags) *background.Launcher {
	return &background.Launcher{Servers: &a.Finder, Config: cfg, Line: flags.line(cfg), Here: flags.c.Flags().Changed("data"), Stderr: a.Stderr}
}

// NewServe returns the command that runs the server.
func NewServe(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "serve [flags]",
		Short: "Run the server until it is interrupted",
		Long: `Run the server until it is interrupted; a second interrupt does not wait for requests that are being
answered. Sandboxes and the commands in them go on running without a server, and the next one on
the same data directory finds them again.

Settings come from the file (--config or SANDPIT_CONFIG), then SANDPIT_LISTEN, SANDPIT_DATA, SANDPIT_IMAGES,
SANDPIT_HOSTS, SANDPIT_PREVIEW_DOMAIN, SANDPIT_MCP_GROUPS, SANDPIT_LOG_LEVEL, SANDPIT_LOG_FORMAT and
SANDPIT_ADMIN_TOKEN, then flags. The variables of mcp-sandboxd hold under their own names (docs/sandboxd.md). Its log goes to standard error. "sandpit up" does the same in the background.

With --stdio, or SANDPIT_STDIO=true, it speaks MCP on standard input and output, too, where standard input is a pipe, as programs
have it that a client started, and ends when the client does. On a terminal, and without standard input, it is no other than without.`,
		Args: app.Takes(0, 0),
	}
	flags := addServerFlags(c)
	flags.addAdopt()
	stdio := c.Flags().Bool("stdio", false, "speak MCP on standard input and output, too, where standard input is a pipe")
	c.RunE = func(c *cobra.Command, _ []string) error {
		cfg, err := flags.settings(a.Getenv)
		if err != nil {
			return err
		}
		ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		context.AfterFunc(ctx, stop) // so that the second ends us at once
		o := daemon.Options{Version: a.Version, Log: a.Stderr, Adopt: flags.adopt}
		ready := func(w io.Writer, url string) {
			fmt.Fprintf(w, "sandpit is ready at %s; the administrator's token is in %s\n", url, tokenPlace(cfg))
		}
		if (*stdio || a.Getenv("SANDPIT_STDIO") == "true") && isPipe(a.Stdin) {
			return serveStdio(ctx, a, cfg, o, func(url string) { ready(a.Stderr, url) }) // standard output is the client's
		}
		o.Ready = func(url string) { ready(a.Stdout, url) }
		return daemon.Run(ctx, cfg, o)
	}
	return c
}

// isPipe reports whether a file is one end of a pipe or a socket, which somebody else holds the other end of.
func isPipe(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) != 0
}

// serveStdio runs the server, and passes messages between standard input and output and it. It ends with standard input, and
// when nobody reads its output: the server then ends as by a signal.
func serveStdio(ctx context.Context, a *app.App, cfg daemon.Config, o daemon.Options, tell func(url string)) error {
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE) // which would end the server at once; the write fails
	defer signal.Stop(broken)
	ctx, end := context.WithCancel(ctx)
	defer end()
	at := make(chan string, 1)
	o.Ready = func(url string) {
		tell(url)
		at <- url
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer end()
		return daemon.Run(ctx, cfg, o)
	})
	group.Go(func() error {
		defer end()
		select {
		case url := <-at:
			return bridgeOwn(ctx, a, cfg, url)
		case <-ctx.Done():
			return nil
		}
	})
	return group.Wait()
}

// bridgeOwn passes messages until standard input ends. That the server ends meanwhile is no error.
func bridgeOwn(ctx context.Context, a *app.App, cfg daemon.Config, url string) error {
	token := cfg.AdminToken
	if path := tokenPlace(cfg); filepath.IsAbs(path) {
		b, err := os.ReadFile(path)
		if err != nil {
			return fault.Wrap(fault.Unauthenticated, err, "the administrator's token cannot be read")
		}
		token = strings.TrimSpace(string(b))
	}
	err := mcp.Bridge(ctx, a, mcpbridge.Options{URL: mcp.URL(place.Server{URL: url}, ""), Token: token}, false)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// tokenPlace says where the administrator's token of a server is.
func tokenPlace(cfg daemon.Config) string {
	path := filepath.Join(cfg.Data, daemon.AdminTokenFile)
	if _, err := os.Stat(path); os.IsNotExist(err) && cfg.AdminToken != "" {
		return "SANDPIT_ADMIN_TOKEN"
	}
	return path
}
