// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package issuer

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Config is one issuer and what its tokens may.
type Config struct {
	// URL identifies it, exactly as the claim iss of its tokens has it.
	URL string `yaml:"url"`
	// Audience is what its tokens for this server have as their claim aud.
	Audience string `yaml:"audience"`
	// JWKS is where its keys are; empty: where its metadata says (OpenID Connect Discovery, RFC 8414).
	JWKS string `yaml:"jwks_url"`
	// CAFile holds, as PEM, authorities that its certificate may be of beside the system's.
	CAFile string `yaml:"ca_file"`

	// ProjectClaim names the claim that says the project; Project is the project of all its tokens.
	// Exactly one is set.
	ProjectClaim string `yaml:"project_claim"`
	Project      string `yaml:"project"`
	// ScopesClaim names the claim that says the scopes, a text of words or a list; empty: scope.
	ScopesClaim string `yaml:"scopes_claim"`
	// Scopes says what scopes of this server a word of the claim is; empty: words are scopes of this
	// server. Other words are passed over.
	Scopes map[string][]access.Scope `yaml:"scopes"`
	// DefaultScopes are those of a token without the claim.
	DefaultScopes []access.Scope `yaml:"default_scopes"`
}

// check returns c with its defaults, or what is wrong with it. at names it in the configuration.
func (c Config) check(at string) (Config, error) {
	for field, text := range map[string]string{"url": c.URL, "jwks_url": c.JWKS} {
		if text == "" && field == "jwks_url" {
			continue
		}
		if err := checkAddress(at+"."+field, text); err != nil {
			return c, err
		}
	}
	if c.Audience == "" {
		return c, fault.InvalidField(at+".audience", "is missing: without it, tokens that are for other servers were valid here")
	}
	if (c.Project == "") == (c.ProjectClaim == "") {
		return c, fault.InvalidField(at, "needs one of project_claim and project, which say whose sandboxes its tokens reach")
	}
	if c.Project != "" {
		if err := access.CheckProject(at+".project", c.Project); err != nil {
			return c, err
		}
	}
	if c.ScopesClaim == "" {
		c.ScopesClaim = "scope"
	}
	given := slices.Clone(c.DefaultScopes)
	for _, list := range c.Scopes {
		given = append(given, list...)
	}
	for _, s := range given {
		if !s.Valid() { // server:admin is not
			return c, fault.InvalidField(at+".scopes", "%q is not a scope that a token can have; those are %v", sandbox.Clip(string(s), 40), access.Scopes())
		}
	}
	return c, nil
}

// words returns for each scope what a client asks the issuer for to get it: of several words the one that
// gives least. It is nil where words are scopes of this server.
func (c Config) words() map[access.Scope]string {
	if len(c.Scopes) == 0 {
		return nil
	}
	out := make(map[access.Scope]string)
	for _, word := range slices.Sorted(maps.Keys(c.Scopes)) {
		for _, s := range c.Scopes[word] {
			if old, ok := out[s]; !ok || len(c.Scopes[word]) < len(c.Scopes[old]) {
				out[s] = word
			}
		}
	}
	return out
}

func checkAddress(field, text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" {
		return fault.InvalidField(field, "%q is not an https address", sandbox.Clip(text, 200)).
			WithRemedy("write it as https://login.example.org/realms/team: keys that come by http could be anybody's")
	}
	return nil
}

// client returns what asks the issuer, made of one that asks others. It follows no redirect.
func (c Config) client(of http.Client) (*http.Client, error) {
	of.CheckRedirect = func(*http.Request, []*http.Request) error {
		return errors.New("it redirects, and keys are read from the place that is configured alone")
	}
	if c.CAFile == "" {
		return &of, nil
	}
	text, err := os.ReadFile(c.CAFile)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the authorities of the issuer %s cannot be read from %s", c.URL, c.CAFile)
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool() // a system that has none
	}
	if !roots.AppendCertsFromPEM(text) {
		return nil, fault.New(fault.Invalid, "the file %s has no certificate in PEM", c.CAFile)
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = &tls.Config{RootCAs: roots}
	of.Transport = t
	return &of, nil
}

// checkAll checks a list of issuers.
func checkAll(all []Config) ([]Config, error) {
	out := make([]Config, 0, len(all))
	for i, c := range all {
		at := fmt.Sprintf("issuers[%d]", i)
		c, err := c.check(at)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(out, func(o Config) bool { return o.URL == c.URL }) {
			return nil, fault.InvalidField(at+".url", "%q is there twice", c.URL)
		}
		out = append(out, c)
	}
	return out, nil
}

// Check returns what is wrong with a list of issuers.
func Check(all []Config) error {
	_, err := checkAll(all)
	return err
}
