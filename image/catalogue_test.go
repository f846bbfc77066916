// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"sandpit.dev/fault"
	"sandpit.dev/image/entry"
)

func openTest(t *testing.T, recipes ...recipe) *Store {
	t.Helper()
	return openDir(t, t.TempDir(), recipes...)
}

func openDir(t *testing.T, dir string, recipes ...recipe) *Store {
	t.Helper()
	if recipes == nil {
		recipes = catalogue()
	}
	s, err := open(Options{Dir: dir}, recipes)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func TestResolve(t *testing.T) {
	s := openTest(t)
	for _, name := range []string{
		"", "default", "python", "python-3.12", "python-3.12-bare", "python:3.12", "node-22", "ubuntu-24.04", "debian-12", "code-interpreter",
		"mcpgateway/sandbox-python:3.12", "mcpgateway/sandbox-runtime:latest", "mcpgateway/skills-runtime:latest",
	} {
		t.Run("IsPythonFor/"+name, func(t *testing.T) {
			e, err := s.Resolve(name)
			if err != nil {
				t.Fatalf("Resolve(%q): %v", name, err)
			}
			if e.Name != "python" {
				t.Errorf("Resolve(%q) = %q, want python", name, e.Name)
			}
		})
	}

	refused := map[string]struct {
		name string
		code fault.Code
	}{
		"UnknownNameIsNotFound":       {"debian:12", fault.NotFound},
		"OtherCaseIsNotFound":         {"Python", fault.NotFound},
		"SpaceIsNotTrimmed":           {" python", fault.NotFound},
		"TraversalIsNotFound":         {"../../etc", fault.NotFound},
		"WorkDirectoryIsNoName":       {"python/.building", fault.NotFound},
		"LongestNameIsNotFound":       {strings.Repeat("a", MaxNameBytes), fault.NotFound},
		"LongerNameIsInvalid":         {strings.Repeat("a", MaxNameBytes+1), fault.Invalid},
		"LongNameOfRunesIsInvalid":    {strings.Repeat("é", MaxNameBytes), fault.Invalid},
		"NulIsInvalid":                {"python\x00", fault.Invalid},
		"NewlineIsInvalid":            {"python\n", fault.Invalid},
		"EscapeSequenceIsInvalid":     {"\x1b[2Jpython", fault.Invalid},
		"BidiOverrideIsInvalid":       {"py\u202enohtyp", fault.Invalid},
		"BrokenUTF8IsInvalid":         {"python\xff", fault.Invalid},
		"NonBreakingSpaceIsInvalid":   {"python\u00a0", fault.Invalid},
		"DeleteCharacterIsInvalid":    {"python\x7f", fault.Invalid},
		"LoneContinuationIsInvalid":   {"\x80", fault.Invalid},
		"LongBrokenTextIsInvalid":     {strings.Repeat("\xff", 4096), fault.Invalid},
		"LongTextOfEmojisIsNotFound":  {strings.Repeat("🐍", 60), fault.NotFound},
		"NameOfAnotherRegistryIsNone": {"example.org/python:3.12", fault.NotFound},
	}
	for title, tc := range refused {
		t.Run(title, func(t *testing.T) {
			_, err := s.Resolve(tc.name)
			if got := fault.Of(err); got != tc.code {
				t.Fatalf("Resolve(%q) gives %q (%v), want %q", tc.name, got, err, tc.code)
			}
			e := fault.As(err)
			if len(e.Message) > 512 || !utf8.ValidString(e.Message) || strings.ContainsAny(e.Message, "\x00\n\x1b") {
				t.Errorf("the message is not bounded plain text: %q", e.Message)
			}
			if tc.code == fault.NotFound && !strings.Contains(e.Remedy, "python-3.12") {
				t.Errorf("the remedy does not name what there is: %q", e.Remedy)
			}
		})
	}
}

func TestCatalogue(t *testing.T) {
	t.Run("EverySpellingMeansOneEntry", func(t *testing.T) {
		owner := make(map[string]string)
		for _, r := range catalogue() {
			for _, name := range r.names() {
				if other, ok := owner[name]; ok {
					t.Errorf("%q is a name of %s and of %s", name, other, r.Name)
				}
				owner[name] = r.Name
				if err := checkName(name); err != nil {
					t.Errorf("%q is refused: %v", name, err)
				}
			}
		}
	})
	t.Run("EveryRecipeHasAStableHash", func(t *testing.T) {
		for i, r := range catalogue() {
			if got, want := catalogue()[i].hash(), r.hash(); got != want {
				t.Errorf("%s hashes to %s and to %s", r.Name, got, want)
			}
		}
	})
	t.Run("TheBaseNeedsNoDownloadOfItsOwn", func(t *testing.T) {
		for _, name := range basePackages {
			if !slices.Contains(pythonPackages, name) {
				t.Errorf("%s is a package of base and not of python", name)
			}
		}
	})
	t.Run("WhatNamesMeanOnceItIsBuiltIsThere", func(t *testing.T) {
		all, err := withEntries(catalogue(), entry.Shipped())
		if err != nil {
			t.Fatal(err)
		}
		for name, own := range meant() {
			if r, err := resolve(all, Policy{}, name); err != nil || r.Name != "python" {
				t.Errorf("%s means %s until %s is built, want python (%v)", name, r.Name, own, err)
			}
			if r, err := resolve(all, Policy{}, own); err != nil || r.Name != own || !r.ByAdmin {
				t.Errorf("%s is %+v (%v), want what an administrator has built", own, r.Entry, err)
			}
		}
	})
	t.Run("AnotherPackageIsAnotherRecipe", func(t *testing.T) {
		a, b := recipe{Contents: []string{"git"}}, recipe{Contents: []string{"git", "curl"}}
		if a.hash() == b.hash() {
			t.Error("both have the same hash")
		}
	})
}

func TestFindDigest(t *testing.T) {
	s := openTest(t)
	for name, code := range map[string]fault.Code{
		"":                                     fault.Invalid,
		"sha256:":                              fault.Invalid,
		"../../../etc":                         fault.Invalid,
		"ABCDEFABCDEF":                         fault.Invalid,
		"abcdefabcde":                          fault.Invalid,
		strings.Repeat("a", 65):                fault.Invalid,
		"sha256:sha256:" + "abcdefabcdef":      fault.Invalid,
		"abcdefabcdef":                         fault.NotFound,
		"sha256:" + strings.Repeat("0", 64):    fault.NotFound,
		strings.Repeat("../", 4):               fault.Invalid,
		"abcdef/abcde":                         fault.Invalid,
		"sha512:" + strings.Repeat("0", 64):    fault.Invalid,
		strings.Repeat("0", 1<<20):             fault.Invalid,
		"\x00\x00\x00\x00\x00\x00\x00\x00\x00": fault.Invalid,
	} {
		_, err := s.FindDigest("python", name)
		if got := fault.Of(err); got != code {
			t.Errorf("FindDigest(%.80q) gives %q, want %q", name, got, code)
		}
	}
}
