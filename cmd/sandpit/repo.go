// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/cmd/sandpit/internal/output"
	"sandpit.dev/fault"
)

const (
	repoDir    = "repo" // in the workspace
	cloneBound = 1800.0 // seconds
)

// repository is one that a command is to find in its sandbox.
type repository struct {
	address string
	host    string // empty: it is reached without a network, or git alone knows how
}

// readRepository checks the address of a repository.
func readRepository(address string) (repository, error) {
	r := repository{address: address}
	if address == "" || strings.HasPrefix(address, "-") || strings.ContainsAny(address, "\r\n\x00") {
		return r, fault.InvalidField("--repo", "%q is not the address of a repository", address)
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return r, nil // a path inside, or what ssh takes
	}
	if _, has := u.User.Password(); has || u.User != nil && (u.Scheme == "https" || u.Scheme == "http") {
		return r, fault.InvalidField("--repo", "has a user or a password in it, which would be kept in the sandbox and in the record of the command").
			WithRemedy("leave it out, and set it as a secret for the host: sandpit secret set NAME --host %s", u.Hostname())
	}
	r.host = u.Hostname()
	return r, nil
}

// reach adds the repository's host to what a new sandbox may reach, unless that says off or everything.
func (r repository) reach(spec *v1.CreateSandbox) {
	if r.host == "" {
		return
	}
	p, ok := spec.Network.(v1.NetworkPolicy)
	if !ok {
		p = v1.NetworkPolicy{Mode: "restricted"}
	}
	if p.Mode != "restricted" {
		return
	}
	if _, err := netip.ParseAddr(r.host); err == nil {
		p.AllowCIDRs = append(slices.Clone(p.AllowCIDRs), r.host)
	} else if !slices.Contains(p.AllowDomains, r.host) {
		p.AllowDomains = append(slices.Clone(p.AllowDomains), r.host)
	}
	spec.Network = p
}

// clone clones the repository into the workspace of a sandbox.
func (a *app) clone(ctx context.Context, cl *client.Client, id string, r repository) error {
	res, err := cl.Exec(ctx, id, v1.Exec{
		Argv: []string{"git", "clone", "--quiet", "--", r.address, repoDir}, Env: map[string]string{"GIT_TERMINAL_PROMPT": "0"},
		TimeoutSeconds: new(cloneBound),
	})
	if err != nil {
		return err
	}
	if res.ExitCode != nil && *res.ExitCode == 0 {
		return nil
	}
	said := strings.TrimSpace(res.Stderr)
	if i := strings.LastIndexByte(said, '\n'); i >= 0 && len(said) > 400 {
		said = said[i+1:]
	}
	return fault.New(fault.State, "%s cannot be cloned: %s", output.Printable(r.address), output.Printable(said)).
		WithRemedy("see what git says; a sandbox reaches what its network allows: --allow-domain NAME, or --network open")
}
