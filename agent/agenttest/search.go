// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// search returns what was found as PATH:LINE:TEXT, of files as PATH.
func search(t *testing.T, c *agent.Client, path string, o sandbox.SearchFilesOptions) ([]string, sandbox.SearchEnd) {
	t.Helper()
	_, found, end, err := c.Search(within(t), path, o)
	if err != nil {
		t.Fatalf("Search %q %+v: %v", path, o, err)
	}
	got := []string{}
	for _, m := range found {
		s := m.Rel
		if m.Line > 0 {
			s += fmt.Sprintf(":%d:%s", m.Line, m.Text)
		}
		got = append(got, s)
	}
	return got, end
}

func testSearch(t *testing.T, open func(*testing.T) *agent.Client, o Options) {
	wantFound := func(t *testing.T, c *agent.Client, path string, o sandbox.SearchFilesOptions, want ...string) {
		t.Helper()
		got, _ := search(t, c, path, o)
		if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", o, diff)
		}
	}
	t.Run("LinesAreFoundInTheOrderOfPaths", func(t *testing.T) {
		c := open(t)
		put(t, c, "a.py", "import os\r\n\nprint('Here')\nno end: here")
		put(t, c, "a/z.txt", "here")
		put(t, c, "a/deep/er/x.py", "x\ny\nhere")
		put(t, c, "a-b.py", "here")
		wantFound(t, c, ".", sandbox.SearchFilesOptions{Pattern: "here"}, "a/deep/er/x.py:3:here", "a/z.txt:1:here", "a-b.py:1:here", "a.py:4:no end: here")
		wantFound(t, c, "a", sandbox.SearchFilesOptions{Pattern: "here"}, "deep/er/x.py:3:here", "z.txt:1:here")
		wantFound(t, c, ".", sandbox.SearchFilesOptions{Pattern: "HERE", IgnoreCase: true, Glob: "*.py"}, "a/deep/er/x.py:3:here", "a-b.py:1:here", "a.py:3:print('Here')", "a.py:4:no end: here")
		wantFound(t, c, ".", sandbox.SearchFilesOptions{Pattern: "^import os$"}, "a.py:1:import os")
		wantFound(t, c, ".", sandbox.SearchFilesOptions{Pattern: "he[r]e", Glob: "a/**/*.py"}, "a/deep/er/x.py:3:here")
		wantFound(t, c, ".", sandbox.SearchFilesOptions{Pattern: "here", Glob: "**/*.txt"}, "a/z.txt:1:here")
		wantFound(t, c, ".", sandbox.SearchFilesOptions{Pattern: "here", Depth: 1}, "a-b.py:1:here", "a.py:4:no end: here")
		wantFound(t, c, ".", sandbox.SearchFilesOptions{Pattern: "nowhere"})
		got, end := search(t, c, ".", sandbox.SearchFilesOptions{Pattern: "here", Limit: 2})
		if len(got) != 2 || end.Ended != "limit" {
			t.Errorf("with a limit: %q, %+v", got, end)
		}
		got, end = search(t, c, ".", sandbox.SearchFilesOptions{Pattern: "here", Limit: 4})
		if len(got) != 4 || end.Ended != "" || end.Files != 4 {
			t.Errorf("with a limit that is just enough: %q, %+v", got, end)
		}
	})
	t.Run("WhatOtherProgramsMadeIsPassedOver", func(t *testing.T) {
		c := open(t)
		put(t, c, "node_modules/m/x.js", "here")
		put(t, c, "src/.git/config", "here")
		put(t, c, ".hidden", "here")
		got, end := search(t, c, ".", sandbox.SearchFilesOptions{Pattern: "here"})
		if !slices.Equal(got, []string{".hidden:1:here"}) || end.Passed != 2 {
			t.Errorf("got %q, %+v", got, end)
		}
		wantFound(t, c, "node_modules", sandbox.SearchFilesOptions{Pattern: "here"}, "m/x.js:1:here")
	})
	t.Run("BinaryFilesArePassedOver", func(t *testing.T) {
		c := open(t)
		put(t, c, "b", "here\x00here")
		put(t, c, "late", strings.Repeat("line\n", 4000)+"here \xff\x00\x1b[1m")
		got, end := search(t, c, ".", sandbox.SearchFilesOptions{Pattern: "here"})
		if len(got) != 1 || end.Binary != 1 || !strings.HasPrefix(got[0], "late:4001:here \uFFFD") {
			t.Errorf("got %q, %+v", got, end)
		}
	})
	t.Run("LongLinesAreShownAroundTheMatch", func(t *testing.T) {
		c := open(t)
		put(t, c, "wide", "first\n"+strings.Repeat("世", 300_000)+"needle"+strings.Repeat("界", 300_000)+"needle\nlast needle")
		_, found, end, err := c.Search(within(t), ".", sandbox.SearchFilesOptions{Pattern: "needle"})
		if err != nil || len(found) != 2 || end.Ended != "" {
			t.Fatalf("%+v %+v %v", found, end, err)
		}
		m := found[0]
		if m.Line != 2 || !m.Cut || !strings.Contains(m.Text, "世needle界") || len(m.Text) > 500 || !utf8.ValidString(m.Text) {
			t.Errorf("%+v", m)
		}
		if m := found[1]; m.Line != 3 || m.Cut || m.Text != "last needle" {
			t.Errorf("%+v", m)
		}
	})
	t.Run("FilesAreListedInPages", func(t *testing.T) {
		c := open(t)
		sh(t, c, "mkdir -p d/e/f x; for i in 1 2 3 4 5; do : > d/e/f$i; : > d/e/f/$i; : > x/$i.py; done; ln -s d/e link")
		all, _ := search(t, c, ".", sandbox.SearchFilesOptions{Limit: 1000})
		if len(all) != 20 || !slices.Contains(all, "link") || !slices.Contains(all, "d/e/f/3") {
			t.Fatalf("got %q", all)
		}
		var paged []string
		for after := ""; ; {
			got, end := search(t, c, ".", sandbox.SearchFilesOptions{Limit: 3, After: after})
			paged = append(paged, got...)
			if end.Ended == "" {
				break
			}
			after = got[len(got)-1]
		}
		if diff := cmp.Diff(all, paged); diff != "" {
			t.Errorf("pages (-whole +pages):\n%s", diff)
		}
		wantFound(t, c, ".", sandbox.SearchFilesOptions{Depth: 1}, "d", "link", "x")
		wantFound(t, c, ".", sandbox.SearchFilesOptions{Glob: "*.py", Depth: 2}, "x/1.py", "x/2.py", "x/3.py", "x/4.py", "x/5.py")
		_, found, _, err := c.Search(within(t), "d", sandbox.SearchFilesOptions{Glob: "e/f1"})
		if err != nil || len(found) != 1 || found[0].File.Path != "/workspace/d/e/f1" || found[0].File.Type != sandbox.RegularFile {
			t.Errorf("%+v %v", found, err)
		}
	})
	t.Run("NamesThatAreNotTextKeepTheirBytes", func(t *testing.T) {
		c := open(t)
		sh(t, c, `printf here > "$(printf 'a\377\nb')"`)
		_, found, _, err := c.Search(within(t), ".", sandbox.SearchFilesOptions{Pattern: "here"})
		if err != nil || len(found) != 1 {
			t.Fatalf("%+v %v", found, err)
		}
		if got := get(t, c, found[0].Rel); got != "here" {
			t.Errorf("its name does not lead to it: %q", got)
		}
	})
	t.Run("BadRequestsAreRefused", func(t *testing.T) {
		c := open(t)
		put(t, c, "f", "x")
		for _, o := range []sandbox.SearchFilesOptions{
			{Pattern: "("}, {Pattern: "(?=x)"}, {Pattern: strings.Repeat("x", 1001)},
			{Pattern: "((x{100}){9}y){900}"}, {Pattern: strings.Repeat("[^x]{1000}", 90)}, {Pattern: strings.Repeat("x{1000}", 100)},
			{Glob: "["}, {Glob: strings.Repeat("*", 1001)}, {Limit: -1}, {Limit: 10_001}, {Depth: -1}, {Depth: 65}, {Pattern: "x", After: "f"},
		} {
			_, _, _, err := c.Search(within(t), ".", o)
			wantCode(t, err, fault.Invalid)
		}
		_, _, _, err := c.Search(within(t), "none", sandbox.SearchFilesOptions{Pattern: "x"})
		wantCode(t, err, fault.NotFound)
		_, _, _, err = c.Search(within(t), "f", sandbox.SearchFilesOptions{Pattern: "x"})
		wantCode(t, err, fault.Invalid)
	})
	t.Run("HostilePatternsTakeLinearTime", func(t *testing.T) {
		c := open(t)
		put(t, c, "f", strings.Repeat("a", 1<<20)+"\n")
		sh(t, c, "mkdir g; cd g; for i in 1 2 3 4 5 6 7 8; do : > aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa$i; done")
		began := time.Now()
		wantFound(t, c, ".", sandbox.SearchFilesOptions{Pattern: "(a|aa)+$b", Depth: 1})
		wantFound(t, c, ".", sandbox.SearchFilesOptions{Pattern: "(.*)(.*)(.*)(.*)(.*)[^a]x", Depth: 1})
		wantFound(t, c, ".", sandbox.SearchFilesOptions{Glob: strings.Repeat("*a", 60) + "*b"})
		wantFound(t, c, ".", sandbox.SearchFilesOptions{Glob: strings.Repeat("**/*/", 100) + "b"})
		if took := time.Since(began); took > patience {
			t.Errorf("they took %s", took)
		}
	})
	t.Run("LinksFifosAndKernelFilesAreNotRead", func(t *testing.T) {
		c := open(t)
		sh(t, c, "mkdir -p real; echo here > real/f; ln -s real dir; ln -s real/f link; ln -s . loop; mkfifo pipe; ln -s /proc/self self; ln -s ../../../../../../etc up")
		wantFound(t, c, ".", sandbox.SearchFilesOptions{Pattern: "here"}, "real/f:1:here")
		if o.OwnRoot {
			got, _ := search(t, c, "/", sandbox.SearchFilesOptions{Depth: 2, Glob: "/proc/*", Limit: 1000})
			if len(got) != 0 {
				t.Errorf("of /proc it lists %q", got)
			}
			_, _, _, err := c.Search(within(t), "/proc", sandbox.SearchFilesOptions{})
			wantCode(t, err, fault.Denied)
		}
	})
	if o.Unprivileged {
		t.Run("WhatMayNotBeReadIsCounted", func(t *testing.T) {
			c := open(t)
			sh(t, c, "mkdir d; echo here > d/f; echo here > f; chmod 0 d f; echo here > g")
			got, end := search(t, c, ".", sandbox.SearchFilesOptions{Pattern: "here"})
			if !slices.Equal(got, []string{"g:1:here"}) || end.Closed != 2 {
				t.Errorf("got %q, %+v", got, end)
			}
		})
	}
	t.Run("DeepTreesAndSparseFilesAreBounded", func(t *testing.T) {
		c := open(t)
		sh(t, c, `for i in $(seq 200); do mkdir d; cd d; echo here > f; done`)
		got, _ := search(t, c, ".", sandbox.SearchFilesOptions{Pattern: "here", Limit: 1000})
		if len(got) != 63 {
			t.Errorf("found %d, want those 64 levels down", len(got))
		}
		sh(t, c, "rm -rf d; echo text > sparse; truncate -s 1T sparse")
		began := time.Now()
		_, end := search(t, c, ".", sandbox.SearchFilesOptions{Pattern: "here"})
		if end.Large+end.Binary != 1 || time.Since(began) > patience {
			t.Errorf("%+v after %s", end, time.Since(began))
		}
	})
	t.Run("ItSurvivesExchangedDirectories", func(t *testing.T) {
		c := open(t)
		sh(t, c, "mkdir out; echo secret > out/f; mkdir -p d/a")
		p := start(t, c, agent.Command{Shell: `while [ ! -e stop ]; do rm -rf d/a; ln -s ../out d/a; rm d/a; mkdir d/a; echo x > d/a/f; rm d/a/f; ln -s ../../out/f d/a/f; done`, MaxStderr: 1})
		for range 200 {
			got, _ := search(t, c, "d", sandbox.SearchFilesOptions{Pattern: "secret"})
			if len(got) != 0 {
				t.Fatalf("a link was followed: %q", got)
			}
		}
		put(t, c, "stop", "")
		collect(t, p)
	})
}
