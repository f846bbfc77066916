// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"slices"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
	"sandpit.dev/internal/mcpsetup"
)

// askBound is how long a server may take to say what the own token may do, where it is not needed
// for sure.
const askBound = 5 * time.Second

// tokenFor returns the token that is written down for a client: the own one, or, if that is an
// administrator's, one that is made for this client on this machine. A file that is written anew
// takes the place of the one before, and so does its token.
func (a *app) tokenFor(ctx context.Context, m mcpsetup.Client, p place, o mcpChoice) (string, error) {
	asked, cancel := context.WithTimeout(ctx, askBound)
	defer cancel()
	who, err := a.askWho(asked, p)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Timeout) || fault.Is(err, fault.Unsupported):
		a.warn("the token is the one of this command; what it may do cannot be asked: %s", whole(err))
		return p.token, nil
	case err != nil:
		return "", err
	case !slices.Contains(who.Scopes, "admin"):
		return p.token, nil
	}
	name := m.ID
	if o.name != mcpsetup.DefaultName {
		name += "-" + o.name
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	name = name[:min(len(name), maxTokenName)]
	cl := a.clientOf(p)
	r := v1.CreateToken{Name: name, Project: &who.Project, Scopes: []string{"sandboxes:read", "sandboxes:write"}}
	made, err := cl.CreateToken(ctx, r)
	if fault.Is(err, fault.Exists) {
		if !o.write {
			return "", fault.New(fault.Exists, "there is a token %s already, and it cannot be shown again", name).
				WithRemedy("replace it and write the file with --write, or end it with: sandpit token rm %s", name)
		}
		if err := cl.DeleteToken(ctx, who.Project, name); err != nil && !fault.Is(err, fault.NotFound) {
			return "", err
		}
		made, err = cl.CreateToken(ctx, r)
	}
	if err != nil {
		return "", err
	}
	a.warn("made the token %s for it, which may use sandboxes and administer nothing; sandpit token rm %[1]s ends it", name)
	return made.Secret, nil
}

// maxTokenName is how long the name of a token may be.
const maxTokenName = 64
