// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"sandpit.dev/internal/servers"
)

// Loopback reports whether host is this machine alone.
func Loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback() || host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// Flag is a flag that names a server. An empty one is refused: in a script it is a variable
// that is not set, and another server would get what is meant for one.
type Flag string

func (f *Flag) Type() string { return "SERVER" }

func (f *Flag) String() string { return string(*f) }

func (f *Flag) Set(s string) error {
	switch {
	case IsURL(s):
		if _, err := ParseURL(s); err != nil {
			return err
		}
	case s != servers.Local && servers.CheckName(s) != nil:
		return fmt.Errorf("%q is not a server: give a name of sandpit server ls, an http or https URL, or local", s)
	}
	*f = Flag(s)
	return nil
}

// IsURL reports whether s is meant for a URL, and not for a name.
func IsURL(s string) bool { return strings.Contains(s, "://") }

// Tidy returns a server's URL as it is kept and compared.
func Tidy(text string) string {
	return strings.TrimSuffix(strings.TrimRight(text, "/"), "/v1")
}

// ParseURL is the address of a server that a person means, also by the URL of a part of it.
func ParseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("%q is not an http or https URL", text)
	case u.User != nil:
		return nil, errors.New("the URL has a user in it; a token comes from a prompt or standard input, and is kept by sandpit login")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("%q is not a server's URL: it has a query or a fragment", text)
	}
	u.Host = strings.ToLower(u.Host)
	u.Path = strings.TrimSuffix(Tidy(u.Path), "/mcp")
	return u, nil
}
