// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"archive/tar"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func testOutcomes(t *testing.T, open func(*testing.T) *agent.Client, o Options) {
	t.Run("EachEntryHasAnOutcome", func(t *testing.T) {
		c := open(t)
		sh(t, c, "mkdir -p in/dir; echo old > in/kept; ln -s .. in/up")
		big := strings.Repeat("x", 100_000)
		in := archiveOf(t,
			tar.Header{Typeflag: tar.TypeDir, Name: "d/", Mode: 0o755},
			tar.Header{Typeflag: tar.TypeReg, Name: "d/small", Linkname: "content"},
			tar.Header{Typeflag: tar.TypeReg, Name: "d/big", Linkname: big},
			tar.Header{Typeflag: tar.TypeReg, Name: "../out", Linkname: "evil"},
			tar.Header{Typeflag: tar.TypeReg, Name: "dir", Linkname: "in the place of a directory"},
			tar.Header{Typeflag: tar.TypeReg, Name: "up/up/out", Linkname: "evil"},
			tar.Header{Typeflag: tar.TypeChar, Name: "device"},
			tar.Header{Typeflag: tar.TypeReg, Name: "kept", Linkname: "new"},
			tar.Header{Typeflag: tar.TypeSymlink, Name: "link", Linkname: "kept"},
		)
		sum, err := c.Unpack(within(t), "in", in, sandbox.UnpackFilesOptions{Outcomes: true})
		if err != nil {
			t.Fatal(err)
		}
		got := []string{}
		for _, f := range sum.Outcomes {
			what := fmt.Sprint(f.Bytes)
			if f.Reason != "" {
				what = "not"
			}
			got = append(got, f.Path+" "+what)
		}
		want := []string{"d/ 0", "d/small 7", "d/big 100000", "../out not", "dir not", "up/up/out not", "device not", "kept 3", "link 0"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("outcomes (-want +got):\n%s", diff)
		}
		if sum.LeftAll != 4 || get(t, c, "in/kept") != "new" || get(t, c, "in/d/small") != "content" {
			t.Errorf("got %+v", sum)
		}
		if left := names(t, c, "in/d"); !slices.Equal(left, []string{"big", "small"}) {
			t.Errorf("there is %q", left)
		}
	})
	t.Run("OutcomesAreBounded", func(t *testing.T) {
		c := open(t)
		var entries []tar.Header
		for i := range 3000 {
			entries = append(entries, tar.Header{Typeflag: tar.TypeReg, Name: "../" + strings.Repeat("long/", 700) + fmt.Sprint(i)})
		}
		sum, err := c.Unpack(within(t), ".", archiveOf(t, entries...), sandbox.UnpackFilesOptions{Outcomes: true})
		if err != nil || sum.LeftAll != 3000 || len(sum.Outcomes) == 0 || len(sum.Outcomes) == 3000 {
			t.Errorf("%d outcomes of %d, %v", len(sum.Outcomes), sum.LeftAll, err)
		}
	})
}

func testReplace(t *testing.T, open func(*testing.T) *agent.Client, o Options) {
	replace := func(t *testing.T, c *agent.Client, o sandbox.ReplaceFilesOptions, files ...string) map[string]string {
		t.Helper()
		done, err := c.Replace(within(t), files, o)
		if err != nil {
			t.Fatalf("Replace %+v: %v", o, err)
		}
		got := make(map[string]string)
		for _, f := range done {
			got[f.Path] = fmt.Sprint(f.Count)
			if f.Err != nil {
				got[f.Path] = string(fault.Of(f.Err))
			}
		}
		return got
	}
	t.Run("EachFileHasAnOutcome", func(t *testing.T) {
		c := open(t)
		put(t, c, "a", "one two one")
		put(t, c, "b", "two")
		sh(t, c, "mkdir d; chmod 750 a; ln -s a link; mkfifo pipe")
		change(t, c, "a", sandbox.ChangeFileOptions{Attributes: map[string]string{"k": "v"}})
		got := replace(t, c, sandbox.ReplaceFilesOptions{Pattern: "one", Replacement: "$1 three"}, "a", "b", "none", "d", "pipe")
		want := map[string]string{"a": "2", "b": "0", "none": "not_found", "d": "invalid", "pipe": "invalid"}
		if !maps.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if got := get(t, c, "a"); got != "$1 three two $1 three" {
			t.Errorf("a is %q", got)
		}
		if f := stat(t, c, "a"); f.Mode != 0o750 || f.Attributes["k"] != "v" {
			t.Errorf("a is %+v", f)
		}
		replace(t, c, sandbox.ReplaceFilesOptions{Pattern: `(?m)^\$(\d) (\w+)`, Replacement: "$2-$1", Regexp: true}, "link")
		if got := get(t, c, "a"); got != "three-1 two $1 three" || stat(t, c, "link").Type != sandbox.Symlink {
			t.Errorf("by a link: a is %q", got)
		}
		replace(t, c, sandbox.ReplaceFilesOptions{Pattern: "TWO", Replacement: "$0", IgnoreCase: true}, "a", "b")
		if a, b := get(t, c, "a"), get(t, c, "b"); a != "three-1 $0 $1 three" || b != "$0" {
			t.Errorf("a is %q, b is %q", a, b)
		}
	})
	t.Run("PatternsThatExplodeAreBounded", func(t *testing.T) {
		c := open(t)
		large := strings.Repeat("a", 4<<20)
		put(t, c, "large", large)
		put(t, c, "small", strings.Repeat("a", 1000))
		began := time.Now()
		for _, r := range []sandbox.ReplaceFilesOptions{
			{Pattern: "a", Replacement: strings.Repeat("b", 64<<10)},                              // 256 GiB
			{Pattern: "a+", Replacement: strings.Repeat("$0", 30_000), Regexp: true},              // 120 GiB
			{Pattern: "(a|aa)+$b|a", Replacement: strings.Repeat("${1}$0", 10_000), Regexp: true}, // both
			{Pattern: "(.*)(.*)(.*)(.*)(.*)(.*)(.*)[^a]x{500}", Replacement: "", Regexp: true},    // much work for each byte
			{Pattern: "((a{1,10}){1,10}){1,2}[^a]", Replacement: "", Regexp: true},                // likewise
		} {
			if got := replace(t, c, r, "large"); got["large"] != "too_large" && got["large"] != "0" {
				t.Errorf("%.60s: %v", r.Pattern, got)
			}
		}
		if took := time.Since(began); took > patience {
			t.Errorf("they took %s", took)
		}
		if got := get(t, c, "large"); got != large {
			t.Errorf("the file has been changed: %d bytes", len(got))
		}
		if got := replace(t, c, sandbox.ReplaceFilesOptions{Pattern: "a", Replacement: "bb"}, "small"); got["small"] != "1000" {
			t.Errorf("what is small: %v", got)
		}
	})
	t.Run("BadRequestsReplaceNothing", func(t *testing.T) {
		c := open(t)
		put(t, c, "f", "x")
		many := slices.Repeat([]string{"f"}, 1001)
		for _, r := range []struct {
			files []string
			o     sandbox.ReplaceFilesOptions
		}{
			{nil, sandbox.ReplaceFilesOptions{Pattern: "x"}},
			{many, sandbox.ReplaceFilesOptions{Pattern: "x"}},
			{many[:1], sandbox.ReplaceFilesOptions{}},
			{many[:1], sandbox.ReplaceFilesOptions{Pattern: "x", Replacement: strings.Repeat("x", 64<<10+1)}},
			{many[:1], sandbox.ReplaceFilesOptions{Pattern: "(", Regexp: true}},
			{many[:1], sandbox.ReplaceFilesOptions{Pattern: "(?=x)", Regexp: true}},
			{many[:1], sandbox.ReplaceFilesOptions{Pattern: "x*", Regexp: true}},
			{many[:1], sandbox.ReplaceFilesOptions{Pattern: "((x{100}){9}y){900}", Regexp: true}},
		} {
			_, err := c.Replace(within(t), r.files, r.o)
			wantCode(t, err, fault.Invalid)
		}
		if got := get(t, c, "f"); got != "x" {
			t.Errorf("the file is %q", got)
		}
	})
	if o.Unprivileged && o.OwnRoot {
		t.Run("WhatMayNotBeWrittenStays", func(t *testing.T) {
			c := open(t)
			put(t, c, "f", "x")
			sh(t, c, "chmod 444 f")
			if got := replace(t, c, sandbox.ReplaceFilesOptions{Pattern: "x", Replacement: "y"}, "f", "/etc/passwd", "/proc/self/environ"); got["f"] != "denied" || got["/proc/self/environ"] != "denied" {
				t.Errorf("got %v", got)
			}
			if got := get(t, c, "f"); got != "x" {
				t.Errorf("the file is %q", got)
			}
		})
	}
}
