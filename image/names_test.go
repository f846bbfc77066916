// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"strings"
	"testing"
	"unicode/utf8"

	"sandpit.dev/fault"
)

func TestNoteSaysWhereANameIsNotTrue(t *testing.T) {
	t.Parallel()
	inside := map[string]string{"debian": "12.8", "python": "3.11.2", "node": "22.18.0"}
	for asked, want := range map[string]string{
		"":                                  "",
		"python":                            "",
		"default":                           "",
		"debian-12":                         "",
		"debian:12":                         "",
		"debian:bookworm":                   "",
		"python-3":                          "",
		"python:3.11":                       "",
		"python:3.11-slim":                  "",
		"python-3.11.2":                     "",
		"node-22":                           "",
		"code-interpreter":                  "",
		"python-3.12":                       `"python-3.12" names python 3.12, and the image python has python 3.11.2`,
		"python-3.12-bare":                  `"python-3.12-bare" names python 3.12, and the image python has python 3.11.2`,
		"python:3.1":                        `"python:3.1" names python 3.1, and the image python has python 3.11.2`,
		"node:20-bookworm":                  `"node:20-bookworm" names node 20, and the image python has node 22.18.0`,
		"debian:trixie":                     `"debian:trixie" names debian 13, and the image python has debian 12.8`,
		"ubuntu-24.04":                      `"ubuntu-24.04" names ubuntu 24.04, and the image python is debian 12.8`,
		"golang:1.24":                       `"golang:1.24" names go 1.24, and the image python has no go`,
		"mcpgateway/sandbox-python:3.12":    `"mcpgateway/sandbox-python:3.12" names python 3.12, and the image python has python 3.11.2`,
		"mcpgateway/sandbox-python:3.11":    `"mcpgateway/sandbox-python:3.11" is the image python here`,
		"mcpgateway/sandbox-runtime:latest": `"mcpgateway/sandbox-runtime:latest" is the image python here`,
		"mcpgateway/skills-runtime:latest":  `"mcpgateway/skills-runtime:latest" is the image python here`,
		"team/app:1.4":                      `"team/app:1.4" is the image python here`,
		"app-7":                             "",
	} {
		if got := Note(asked, "python", inside); got != want {
			t.Errorf("Note(%q) = %q, want %q", asked, got, want)
		}
		if got := Note(asked, "python", nil); got != "" {
			t.Errorf("Note(%q) of an unknown inside = %q", asked, got)
		}
	}
	if got := Note("ghcr.io/team/python:3.11", "ghcr.io/team/python:3.11", inside); got != "" {
		t.Errorf("an image's own name: %q", got)
	}
	for _, hostile := range []string{strings.Repeat("a-1", 1<<16), "python:3.12\x1b[2J", "\xff\xfe/python:9", "/", ":", "@", "-1", "python:", "python-99999999999999999999.1"} {
		got := Note(hostile, "python", inside)
		if len(got) > 512 || !utf8.ValidString(got) || strings.ContainsAny(got, "\x1b\n") {
			t.Errorf("Note(%.20q…) = %q", hostile, got)
		}
	}
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	recipes := func() []recipe {
		return []recipe{
			{Entry: Entry{Name: "python", Aliases: []string{"python-3.12", "debian-12"}}},
			{Entry: Entry{Name: "node", Aliases: []string{"node-22"}}},
			{Entry: Entry{Name: "base"}},
		}
	}
	openWith := func(t *testing.T, p Policy) (*Store, error) {
		t.Helper()
		s, err := open(Options{Dir: t.TempDir(), Policy: p}, recipes())
		if err == nil {
			t.Cleanup(func() { _ = s.Close() })
		}
		return s, err
	}
	t.Run("TheDefaultIsTheFirstOfTheList", func(t *testing.T) {
		s, err := openWith(t, Policy{Default: "node-22", Allowed: []string{"n*", "debian-12"}})
		if err != nil {
			t.Fatal(err)
		}
		if e, err := s.Resolve(""); err != nil || e.Name != "node" {
			t.Errorf("the empty name: %v, %v", e, err)
		}
		all, err := s.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, st := range all {
			word := st.Name
			if st.Default {
				word += " default"
			}
			if st.Allowed {
				word += " allowed"
			}
			got = append(got, word)
		}
		if want := "node default allowed, python allowed, base"; strings.Join(got, ", ") != want {
			t.Errorf("listed %v, want %s", got, want)
		}
		_, err = s.Resolve("perl")
		if r := fault.As(err).Remedy; !strings.Contains(r, "python-3.12") || strings.Contains(r, "base") {
			t.Errorf("the remedy names other images than those that are allowed: %q", r)
		}
	})
	t.Run("AnotherImageIsRefusedWithTheAllowedNames", func(t *testing.T) {
		p := Policy{Allowed: []string{"python", "registry.example/team/*"}}
		for name, ok := range map[string]bool{
			"python": true, "python-3.12": true, "node": false, "node-22": false, "base": false,
		} {
			r, err := resolve(recipes(), p, name)
			if err != nil {
				t.Fatal(err)
			}
			err = p.Admit(r.Entry, name)
			if ok != (err == nil) || err != nil && (!fault.Is(err, fault.Denied) || !strings.Contains(fault.As(err).Remedy, "python, registry.example/team/*")) {
				t.Errorf("%s: %v", name, err)
			}
		}
		for name, ok := range map[string]bool{
			"registry.example/team/app:1": true, "registry.example/team/a/b": false, "registry.example/other/app": false, "": false,
			"registry.example/team/../../python": false,
		} {
			if got := p.Allows(Entry{Name: name}, name); got != ok {
				t.Errorf("%q: %v", name, got)
			}
		}
	})
	t.Run("ANameThatIsNotTrueIsRefusedWhereThatIsAskedFor", func(t *testing.T) {
		img := Image{Name: "python", Versions: map[string]string{"python": "3.11.2"}}
		if err := (Policy{}).Fit("python-3.12", img, false); err != nil {
			t.Error(err)
		}
		for _, err := range []error{(Policy{}).Fit("python-3.12", img, true), (Policy{Exact: true}).Fit("python-3.12", img, false)} {
			if !fault.Is(err, fault.NotFound) || !strings.Contains(err.Error(), "3.11.2") || fault.As(err).Remedy == "" {
				t.Errorf("got %v", err)
			}
		}
		if err := (Policy{Exact: true}).Fit("python-3.11", img, true); err != nil {
			t.Error(err)
		}
	})
	t.Run("WhatCannotHoldIsRefusedAtTheStart", func(t *testing.T) {
		for title, c := range map[string]struct {
			p     Policy
			field string
		}{
			"UnknownDefault":       {Policy{Default: "perl"}, "images.default"},
			"PathAsDefault":        {Policy{Default: "../../etc"}, "images.default"},
			"DefaultIsNotAllowed":  {Policy{Default: "base", Allowed: []string{"python"}}, "images.allowed"},
			"FirstIsNotAllowed":    {Policy{Allowed: []string{"node"}}, "images.allowed"},
			"EmptyEntry":           {Policy{Allowed: []string{""}}, "images.allowed"},
			"UnfinishedBracket":    {Policy{Allowed: []string{"python", "[a"}}, "images.allowed"},
			"ControlCharacter":     {Policy{Allowed: []string{"a\x1b[2J"}}, "images.allowed"},
			"TooMany":              {Policy{Allowed: make([]string, MaxAllowed+1)}, "images.allowed"},
			"DefaultWithNulInside": {Policy{Default: "a\x00"}, "images.default"},
		} {
			_, err := openWith(t, c.p)
			if e := fault.As(err); !fault.Is(err, fault.Invalid) || len(e.Fields) != 1 || e.Fields[0].Name != c.field {
				t.Errorf("%s: %v", title, err)
			}
		}
	})
}
