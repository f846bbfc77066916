// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolset

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/git"
	"sandpit.dev/sandbox"
)

// mostBlocked bounds how many refusals an answer names, and mostWhy the characters of
// each: the words why, which are the server's, and the longest name there is.
const (
	mostBlocked = 5
	MostWhy     = 600
)

// offline is how programs say that they found no network. It only decides whether
// the server says what its policy is; what it takes out is shown as data is.
var offline = regexp.MustCompile(`(?i)could not resolve host:? *(\S+)|temporary failure in name resolution|name or service not known|network is unreachable|ENOTFOUND *(\S*)|EAI_AGAIN *(\S*)|no such host|\(from versions: none\)`)

// Blocked says what the network's policy refused to a command that failed.
func (c *Call) Blocked(ctx context.Context, ref string, e *Outcome, since time.Time) []string {
	if e.Running || e.ExitCode == 0 {
		return nil
	}
	return c.refused(ctx, ref, e.Stderr.Text+e.Stdout.Text, since)
}

// CloneError makes the error of a clone clearer where the network's policy refused it, in terms of tools.
func (c *Call) CloneError(ctx context.Context, err error) error {
	f, ok := errors.AsType[*git.Failure](err)
	if !ok || f.Host == "" {
		return err
	}
	e := *fault.As(err)
	if !c.OwnTools() {
		e.Remedy = "see what git says; path names another directory, and a sandbox reaches what its network allows"
	}
	lines := c.refused(ctx, c.Ref, f.Said, f.Began)
	if len(lines) > 0 {
		e.Message, _, _ = strings.Cut(e.Message, git.Refused)
	}
	for _, line := range lines {
		if next, ok := strings.CutPrefix(line, "next: "); !ok {
			e.Message += "\n" + line
		} else if c.OwnTools() {
			e.Remedy = next
		}
	}
	return &e
}

// refused says what the network's policy refused since a moment to a command that failed, and said this.
func (c *Call) refused(ctx context.Context, ref, said string, since time.Time) []string {
	log, err := c.Networks.NetworkLog(ctx, c.Caller, ref)
	if err != nil {
		return nil // what the command itself says has to do
	}
	ask := "ask the user, or whoever runs this server, to allow it"
	if log.Policy.Mode == sandbox.NetworkOff || log.Policy.Mode == "" {
		m := offline.FindStringSubmatch(said)
		if m == nil {
			return nil
		}
		host, name := "what it asked for", ""
		for _, name = range m[1:] {
			if name = strings.Trim(name, `.,:;'"`); name != "" {
				host = Quote(Clip(name))
				break
			}
		}
		next := "this server gives no sandbox a network; work without, or " + ask
		if most := c.Networks.Networks(); len(most) > 1 {
			lists := "those names, or the presets " + strings.Join(c.Networks.PresetNames(), ", ")
			next = `create_sandbox with another name and {"network": "restricted", "allow_domains": "…"} makes one that reaches ` + lists + "; or " + ask
			if c.Has(GroupManage) {
				next = fmt.Sprintf(`update_sandbox with {"sandbox": %s, "network": "restricted", "allow_domains": "…"} lets it reach %s; or `, Quote(ref), lists) + ask
			}
			next = c.request(ref, name) + next
		}
		return []string{fmt.Sprintf("network blocked: %s is not reached, since the sandbox's network is off", host), "next: " + next}
	}
	var out []string
	var refused string // a name that a person may allow
	for _, x := range log.Entries {
		if x.Reason == "" || x.Learned || x.Last.Before(since) {
			continue
		}
		if len(out) == mostBlocked {
			out = append(out, "network blocked: … and more")
			break
		}
		if refused == "" && x.Unlisted() {
			refused = x.Name
		}
		out = append(out, "network blocked: "+PrintablePath(sandbox.Clip(x.Explain(), MostWhy)))
	}
	if out == nil {
		return nil
	}
	holds := "policy " + string(log.Policy.Mode)
	if len(log.Policy.AllowDomains) > 0 {
		holds += ", which allows " + strings.Join(log.Policy.AllowDomains[:min(mostBlocked, len(log.Policy.AllowDomains))], ", ")
		if len(log.Policy.AllowDomains) > mostBlocked {
			holds += " …"
		}
	}
	if refused != "" {
		ask = c.request(ref, refused) + ask
	}
	return append(out, holds, "next: "+ask)
}

// request is the call that asks a person for a host, "" for one that is not known, and the
// beginning of what else can be done; "" where nothing may be asked for.
func (c *Call) request(ref, host string) string {
	if !c.Requests.Asks() {
		return ""
	}
	if host == "" {
		host = "…"
	}
	return fmt.Sprintf(`request_network with {"sandbox": %s, "allow": %s} asks for it, or for presets; else `, Quote(ref), Quote(Clip(host)))
}
