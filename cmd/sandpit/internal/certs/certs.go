// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package certs has the commands about the server's certificate.
package certs

import (
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sandpit.dev/cmd/sandpit/internal/exit"
	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/internal/localca"
	"sandpit.dev/sandbox"
)

// App is what the commands need of the program.
type App struct {
	Out   io.Writer
	Takes func(least, most int) cobra.PositionalArgs
	Group func(*cobra.Command, []string) error
}

// New returns the group of commands.
func New(a App) *cobra.Command {
	c := &cobra.Command{
		Use:   "tls",
		Short: "Make a certificate for a server",
		Long:  `Make a certificate for a server, where no public authority can. It is for the server's machine and asks no server.`,
		Args:  cobra.ArbitraryArgs,
		RunE:  a.Group,
	}
	c.AddCommand(a.initialize())
	return c
}

// defaultDir is below the default data directory: its files are the server's.
const defaultDir = "/var/lib/sandpit/tls"

// made is the answer as data.
type made struct {
	Domain    string    `json:"domain"`
	Names     []string  `json:"names"`
	Cert      string    `json:"cert"`
	Key       string    `json:"key"`
	Authority string    `json:"authority"`
	Kept      bool      `json:"authority_kept"`
	Expires   time.Time `json:"expires_at"`
}

func (a App) initialize() *cobra.Command {
	c := &cobra.Command{
		Use:   "init DOMAIN [flags]",
		Short: "Make a local authority and a certificate for DOMAIN and all names below it",
		Long: `Make a local authority and a certificate for DOMAIN and *.DOMAIN, and say how the server gets it, what clients
have to trust, and which names have to lead to the server. Clients that trust the authority trust it with DOMAIN and
the names below it alone.

The certificate holds for 397 days. The same command again makes the next one by the same authority, and the server
takes it without a restart.`,
		Example: `  sudo sandpit tls init box.example
  sandpit tls init box.example --dir ./tls`,
		Args: a.Takes(1, 1),
	}
	dir := c.Flags().String("dir", defaultDir, "the directory for the files")
	out := output.FormatFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		domain := args[0]
		if !isDomain(domain) {
			return exit.Misuse(c, "%q is not a valid lower-case domain name; write it as box.example", domain)
		}
		at, err := filepath.Abs(*dir)
		if err != nil {
			return err
		}
		m, err := localca.Make(at, domain, time.Now())
		if err != nil {
			return err
		}
		r := made{
			Domain: domain, Names: m.Names, Kept: m.Kept, Expires: m.Expires.UTC(),
			Cert: filepath.Join(at, localca.CertFile), Key: filepath.Join(at, localca.KeyFile), Authority: filepath.Join(at, localca.AuthorityFile),
		}
		if out.IsData() {
			return output.Data(a.Out, *out, r)
		}
		_, err = io.WriteString(a.Out, r.text())
		return err
	}
	return c
}

func (m *made) text() string {
	authority := "a new authority"
	if m.Kept {
		authority = "the authority that was there"
	}
	return fmt.Sprintf(`A certificate for %[7]s, until %[2]s, by %[3]s.

The server's file of settings:
  domain: %[1]s
  tls:
    cert: %[4]s
    key: %[5]s
or SANDPIT_DOMAIN, SANDPIT_TLS_CERT and SANDPIT_TLS_KEY. It listens on port 8443 then, beside its other address
(tls.listen chooses another one).

Clients have to trust %[6]s, which vouches for these names alone:
  this machine:  cp %[6]s /usr/local/share/ca-certificates/sandpit.crt && update-ca-certificates
  Go, Python:    SSL_CERT_FILE=%[6]s (Python's requests: REQUESTS_CA_BUNDLE)
  Node:          NODE_EXTRA_CA_CERTS=%[6]s
  curl:          curl --cacert %[6]s https://%[1]s:8443/health
  browsers:      import it as an authority for web sites

Names that have to lead to the server: %[1]s, api.%[1]s, and *.%[1]s for previews. /etc/hosts knows no *;
dnsmasq does: address=/%[1]s/127.0.0.1. sandpit doctor looks at all of this.
`, m.Domain, m.Expires.Format(time.DateOnly), authority, m.Cert, m.Key, m.Authority, strings.Join(m.Names, " and "))
}

// isDomain reports whether a name is one that a server can have, as it is compared.
func isDomain(name string) bool {
	normal, ok := sandbox.NormalName(name)
	_, err := netip.ParseAddr(name)
	return ok && normal == name && err != nil && !strings.Contains(name, "_")
}
