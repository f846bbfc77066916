// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/flags"
	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/fault"
)

func newPorts(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "ports [flags] SANDBOX",
		Short: "List what listens in a sandbox",
		Long: `List what listens in a sandbox: the port, the address that it is bound to, and the process. The URL is
private; "sandpit preview" makes a link that others can open.`,
		Args:              app.Takes(1, 1),
		ValidArgsFunction: a.CompleteFirst,
	}
	how := output.ListFlags(c, "ports only")
	c.RunE = func(c *cobra.Command, args []string) error {
		cl, err := a.Client()
		if err != nil {
			return err
		}
		l, err := cl.Ports(c.Context(), args[0])
		if err != nil {
			return err
		}
		if l.Truncated {
			a.Warn("there is more than could be listed")
		}
		return output.List(a.Stdout, how, l.Items, func(p v1.Port) string { return strconv.Itoa(p.Port) }, output.Columns[v1.Port]{
			Head: []string{"PORT", "PROTOCOL", "ADDRESS", "PID", "COMMAND", "USER", "URL"},
			Row: func(p v1.Port, _ time.Time) []string {
				pid := ""
				if p.PID != 0 {
					pid = strconv.Itoa(p.PID)
				}
				return []string{strconv.Itoa(p.Port), p.Protocol, p.Address, pid, p.Command, p.User, p.URL}
			},
			Whole: l,
		})
	}
	return c
}

// portOf reads a port.
func portOf(c *cobra.Command, s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > 65535 {
		return 0, exit.Misuse(c, "%q is not a valid port, which is a number from 1 to 65535", s)
	}
	return n, nil
}

// preview makes a link to a port.
func preview(a *app.App, c *cobra.Command, ref, text string, expires *flags.Period) (*v1.Preview, *client.Client, error) {
	port, err := portOf(c, text)
	if err != nil {
		return nil, nil, err
	}
	cl, err := a.Client()
	if err != nil {
		return nil, nil, err
	}
	p, err := cl.Preview(c.Context(), ref, v1.CreatePreview{Port: port, ExpiresSeconds: expires.Seconds()})
	return p, cl, err
}

// warnSilent warns where nothing listens on a port.
func warnSilent(ctx context.Context, a *app.App, cl *client.Client, ref string, port int) {
	l, err := cl.Ports(ctx, ref)
	switch {
	case fault.Is(err, fault.State):
		a.Warn("nothing answers there yet: %s", fault.As(err).Message)
	case err == nil && !l.Truncated && !slices.ContainsFunc(l.Items, func(p v1.Port) bool { return p.Port == port }):
		a.Warn("nothing listens on port %d of %s yet", port, ref)
	}
}

func newPreview(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "preview [flags] SANDBOX PORT",
		Short: "Make a link to what a port serves over HTTP",
		Long: `Make a link to what a port in a sandbox serves over HTTP. Whoever has the link can open it until it
expires or the sandbox is deleted. Nothing needs to listen there yet.`,
		Example: `  sandpit exec --detach web -- python3 -m http.server 8000
  sandpit preview web 8000 --expires 1d`,
		Args:              app.Takes(2, 2),
		ValidArgsFunction: a.CompletePort,
	}
	var expires flags.Period
	c.Flags().Var(&expires, "expires", "how long it is good, at most 30d (default 1h)")
	byPath := c.Flags().Bool("path", false, "print the form by path, for clients that cannot reach the preview's own host name")
	out := output.FormatFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		p, cl, err := preview(a, c, args[0], args[1], &expires)
		if err != nil {
			return err
		}
		switch {
		case out.IsData():
			return output.Data(a.Stdout, *out, p)
		case *byPath:
			_, err = fmt.Fprintln(a.Stdout, p.PathURL)
		default:
			_, err = fmt.Fprintln(a.Stdout, p.URL)
		}
		warnSilent(c.Context(), a, cl, args[0], p.Port)
		return err
	}
	return c
}

func newForward(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "forward [flags] SANDBOX [LOCAL:]REMOTE...",
		Short: "Forward local ports to ports in a sandbox",
		Long: `Forward local TCP ports to ports in a sandbox, until it is interrupted. Anything that speaks TCP works:
databases, debuggers, HTTP. LOCAL is REMOTE where it is left out; 0 takes a free port.`,
		Example: `  sandpit forward web 8000
  sandpit forward web 15432:5432 9229`,
		Args:              app.Takes(2, -1),
		ValidArgsFunction: a.CompletePort,
	}
	address := c.Flags().String("address", "127.0.0.1", "local address to listen on")
	c.RunE = func(c *cobra.Command, args []string) error {
		var pairs []forwarded
		for _, arg := range args[1:] {
			f, err := parseForward(c, arg)
			if err != nil {
				return err
			}
			pairs = append(pairs, f)
		}
		cl, err := a.Client()
		if err != nil {
			return err
		}
		ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		// Listening for a sandbox that is not there would only tell so later.
		if _, err := cl.Get(ctx, args[0]); err != nil {
			return err
		}
		return forward(ctx, a, cl, args[0], *address, pairs)
	}
	return c
}

// forwarded is a local port and where it leads.
type forwarded struct{ local, remote int }

func parseForward(c *cobra.Command, s string) (f forwarded, err error) {
	local, remote, two := strings.Cut(s, ":")
	if !two {
		remote = local
	}
	if f.remote, err = portOf(c, remote); err != nil {
		return f, err
	}
	if local == "0" {
		return f, nil
	}
	f.local, err = portOf(c, local)
	return f, err
}

// forward listens on every pair's local port and carries connections, until ctx
// is done.
func forward(ctx context.Context, a *app.App, cl *client.Client, ref, address string, pairs []forwarded) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	failed := make(chan error, len(pairs))
	for _, f := range pairs {
		l, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(f.local)))
		if err != nil {
			return fault.Wrap(fault.Unavailable, err, "cannot listen on %s port %d: %s", address, f.local, err).
				WithRemedy("choose another local port: sandpit forward %s 0:%d", ref, f.remote)
		}
		context.AfterFunc(ctx, func() { _ = l.Close() })
		if _, err := fmt.Fprintf(a.Stdout, "%s -> %s:%d\n", l.Addr(), ref, f.remote); err != nil {
			return err
		}
		wg.Go(func() { failed <- accept(ctx, a, &wg, l, cl, ref, f.remote) })
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

// accept carries what connects to a listener.
func accept(ctx context.Context, a *app.App, wg *sync.WaitGroup, l net.Listener, cl *client.Client, ref string, port int) error {
	for {
		nc, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fault.Wrap(fault.Unavailable, err, "the local port takes no connections any more")
		}
		wg.Go(func() {
			defer nc.Close() // and not before what it says: whoever is cut off may end us at once
			if err := carry(ctx, nc.(*net.TCPConn), cl, ref, port); err != nil && ctx.Err() == nil {
				a.Warn("%s", shownError(err))
			}
		})
	}
}

// carry joins one local connection, which the caller closes, with one to the sandbox.
func carry(ctx context.Context, nc *net.TCPConn, cl *client.Client, ref string, port int) error {
	p, err := cl.DialPort(ctx, ref, port)
	if err != nil {
		return err
	}
	defer p.Close()
	stop := context.AfterFunc(ctx, func() { _, _ = nc.Close(), p.Close() })
	defer stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		_, err := io.Copy(struct{ io.Writer }{p}, nc)
		if err != nil {
			_ = p.Close() // the local side broke off
			return
		}
		_ = p.CloseWrite() // where it fails, reading tells why
	})
	_, err = io.Copy(nc, struct{ io.Reader }{p})
	if err != nil {
		_ = nc.SetLinger(0) // a cut must not look like an end
		_ = nc.Close()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		return err
	}
	return nc.CloseWrite()
}

// shownError is an error in one line.
func shownError(err error) string {
	e := fault.As(err)
	if e.Remedy == "" {
		return e.Message
	}
	return e.Message + "; " + e.Remedy
}
