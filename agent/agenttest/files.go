// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func testFiles(t *testing.T, open func(*testing.T) *agent.Client, o Options) {
	t.Run("WhatIsWrittenIsRead", func(t *testing.T) {
		c := open(t)
		for _, n := range []int{0, 1, 65535, 65536, 65537, 5 << 20} {
			content := strings.Repeat("0123456789abcdef\x00\xff", n/18+1)[:n]
			fi, created, err := c.WriteFile(within(t), "f", strings.NewReader(content), sandbox.WriteFileOptions{Size: int64(n)})
			if err != nil {
				t.Fatal(err)
			}
			if created != (n == 0) || fi.Size != int64(n) || fi.Path != "/workspace/f" || fi.Type != sandbox.RegularFile || fi.Mode != 0o644 {
				t.Errorf("%d bytes: created %v, %+v", n, created, fi)
			}
			if got := get(t, c, "/workspace/f"); got != content {
				t.Errorf("%d bytes: got %d back", n, len(got))
			}
		}
		if got := names(t, c, "."); !slices.Equal(got, []string{"f"}) {
			t.Errorf("the directory holds %q", got)
		}
	})
	t.Run("RangesAreExact", func(t *testing.T) {
		c := open(t)
		put(t, c, "f", "0123456789")
		for _, tt := range []struct {
			off, n int64
			want   string
		}{{0, 0, "0123456789"}, {3, 0, "3456789"}, {3, 4, "3456"}, {8, 100, "89"}, {10, 5, ""}, {1000, 5, ""}, {0, -1, "0123456789"}} {
			fi, r, err := c.ReadFile(within(t), "f", sandbox.ReadFileOptions{Offset: tt.off, Length: tt.n})
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(r)
			_ = r.Close()
			if err != nil || string(b) != tt.want || fi.Size != 10 {
				t.Errorf("%d+%d: got %q of %d, want %q (%v)", tt.off, tt.n, b, fi.Size, tt.want, err)
			}
		}
		_, _, err := c.ReadFile(within(t), "f", sandbox.ReadFileOptions{Offset: -1})
		wantCode(t, err, fault.Invalid)
	})
	t.Run("ReplacingKeepsTheMode", func(t *testing.T) {
		c := open(t)
		put(t, c, "s", "#!/bin/sh\necho one\n")
		sh(t, c, "chmod 750 s")
		put(t, c, "s", "#!/bin/sh\necho two\n")
		if got := sh(t, c, "./s; stat -c %a s"); got != "two\n750\n" {
			t.Errorf("got %q", got)
		}
		if _, _, err := c.WriteFile(within(t), "s", strings.NewReader(""), sandbox.WriteFileOptions{Mode: 0o600}); err != nil {
			t.Fatal(err)
		}
		if fi, err := c.Stat(within(t), "s", ""); err != nil || fi.Mode != 0o600 {
			t.Errorf("%+v %v", fi, err)
		}
		_, _, err := c.WriteFile(within(t), "s", strings.NewReader(""), sandbox.WriteFileOptions{Mode: fs.ModeSetuid | 0o755})
		wantCode(t, err, fault.Invalid)
	})
	t.Run("CutUploadLeavesTheOldFile", func(t *testing.T) {
		c := open(t)
		put(t, c, "f", "old")
		broken := errors.New("the source broke")
		_, _, err := c.WriteFile(within(t), "f", io.MultiReader(bytes.NewReader(make([]byte, 300_000)), failing{broken}), sandbox.WriteFileOptions{})
		if !errors.Is(err, broken) {
			t.Errorf("error: %v", err)
		}
		_, _, err = c.WriteFile(within(t), "f", strings.NewReader("short"), sandbox.WriteFileOptions{Size: 1000})
		wantCode(t, err, fault.Malformed)
		if got := get(t, c, "f"); got != "old" {
			t.Errorf("the file holds %q", got)
		}
		for sh(t, c, "ls -A") != "f\n" { // the agent notices the cut in its own time
			if t.Context().Err() != nil {
				t.Fatal("something is left")
			}
		}
	})
	t.Run("ReadersSeeTheOldOrTheNewFileWhole", func(t *testing.T) {
		c := open(t)
		a, b := strings.Repeat("a", 200_000), strings.Repeat("b", 200_000)
		put(t, c, "f", a)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range 50 {
				put(t, c, "f", []string{a, b}[i%2])
			}
		}()
		for running := true; running; {
			select {
			case <-done:
				running = false
			default:
			}
			if got := get(t, c, "f"); got != a && got != b {
				t.Fatalf("a mix of %d bytes", len(got))
			}
		}
	})
	t.Run("ParentsAreMadeOnlyOnRequest", func(t *testing.T) {
		c := open(t)
		_, _, err := c.WriteFile(within(t), "a/b/c", strings.NewReader("x"), sandbox.WriteFileOptions{})
		wantCode(t, err, fault.NotFound)
		put(t, c, "a/b/c", "x")
		if got := sh(t, c, "cat a/b/c; stat -c %a a/b"); got != "x755\n" {
			t.Errorf("%q", got)
		}
		put(t, c, "a//b/./../b/d", "y")
		if got := sh(t, c, "cat a/b/d"); got != "y" {
			t.Errorf("%q", got)
		}
	})
	t.Run("LinksAreFollowedToTheirFile", func(t *testing.T) {
		c := open(t)
		sh(t, c, "mkdir d; echo old > d/real; ln -s d/real link; ln -s link link2; ln -s d dir; ln -s nowhere dangling; ln -s loop loop")
		put(t, c, "link2", "new")
		if got := sh(t, c, "cat d/real; test -L link2 && test -L link && echo; readlink link2"); got != "new\nlink\n" {
			t.Errorf("%q", got)
		}
		put(t, c, "dir/other", "x")
		put(t, c, "dangling", "made")
		if got := sh(t, c, "cat d/other nowhere"); got != "xmade" {
			t.Errorf("%q", got)
		}
		if got := get(t, c, "link"); got != "new" {
			t.Errorf("%q", got)
		}
		fi, err := c.Stat(within(t), "link2", "")
		if err != nil || fi.Type != sandbox.Symlink || fi.Target != "link" {
			t.Errorf("%+v %v", fi, err)
		}
		_, _, err = c.WriteFile(within(t), "loop", strings.NewReader(""), sandbox.WriteFileOptions{})
		wantCode(t, err, fault.Invalid)
		_, _, err = c.ReadFile(within(t), "loop", sandbox.ReadFileOptions{})
		wantCode(t, err, fault.Invalid)
	})
	testFileLists(t, open, o)
}

// testFileLists tests lists, names and errors.
func testFileLists(t *testing.T, open func(*testing.T) *agent.Client, o Options) {
	t.Run("ListsAreSortedAndBounded", func(t *testing.T) {
		c := open(t)
		sh(t, c, "mkdir d && cd d && for i in $(seq 1 1200); do : > f$i; done; mkdir sub; ln -s f1 link; mkfifo pipe; printf 12345 > f7")
		list, truncated, err := c.List(within(t), "d", sandbox.ListFilesOptions{})
		if err != nil || truncated || len(list) != 1203 {
			t.Fatalf("%d entries, %v, %v", len(list), truncated, err)
		}
		if !slices.IsSortedFunc(list, func(a, b sandbox.FileInfo) int { return strings.Compare(a.Name, b.Name) }) {
			t.Error("not sorted")
		}
		byName := make(map[string]sandbox.FileInfo)
		for _, fi := range list {
			if fi.Path != "/workspace/d/"+fi.Name || fi.ModTime.IsZero() {
				t.Fatalf("%+v", fi)
			}
			byName[fi.Name] = fi
		}
		if byName["sub"].Type != sandbox.Directory || byName["pipe"].Type != sandbox.OtherFile || byName["link"].Target != "f1" || byName["f7"].Size != 5 {
			t.Errorf("%+v", byName["f7"])
		}
		short, truncated, err := c.List(within(t), "d", sandbox.ListFilesOptions{Limit: 10})
		if err != nil || !truncated {
			t.Errorf("%v %v", truncated, err)
		}
		if diff := cmp.Diff(list[:10], short); diff != "" {
			t.Errorf("the first ten:\n%s", diff)
		}
		_, _, err = c.List(within(t), "d", sandbox.ListFilesOptions{Limit: 1 << 30})
		wantCode(t, err, fault.Invalid)
		_, _, err = c.List(within(t), "d/f1", sandbox.ListFilesOptions{})
		wantCode(t, err, fault.Invalid)
	})
	t.Run("ListsAreBoundedInBytesAndGoOn", func(t *testing.T) {
		c := open(t)
		// On the wire each of these is three times as long, and all of them 17 MB.
		const links, length = 1540, 3800
		sh(t, c, fmt.Sprintf(`mkdir d && cd d && python3 -c "import os; [os.symlink(b'\xff' * %d, str(i)) for i in range(1, %d + 1)]"`, length, links))
		seen, pages, size := make(map[string]bool), 0, 0
		for after := ""; ; pages++ {
			list, more, err := c.List(within(t), "d", sandbox.ListFilesOptions{After: after})
			if err != nil {
				t.Fatal(err)
			}
			size = 0
			for _, fi := range list {
				if fi.Name <= after || seen[fi.Name] || len(fi.Target) != 3*length {
					t.Fatalf("%q comes after %q, seen %v, to %d bytes", fi.Name, after, seen[fi.Name], len(fi.Target))
				}
				seen[fi.Name], after, size = true, fi.Name, size+len(fi.Target)
			}
			if size > 16<<20 {
				t.Fatalf("a page has %d bytes", size)
			}
			if !more {
				break
			}
		}
		if pages == 0 || len(seen) != links {
			t.Errorf("%d entries on %d pages before the last", len(seen), pages)
		}
		list, more, err := c.List(within(t), "d", sandbox.ListFilesOptions{After: "998"})
		if err != nil || more || len(list) != 1 || list[0].Name != "999" {
			t.Errorf("after the last but one: %d entries, %v, %v", len(list), more, err)
		}
		_, _, err = c.List(within(t), "d", sandbox.ListFilesOptions{After: strings.Repeat("x", 256)})
		wantCode(t, err, fault.Invalid)
	})
	t.Run("NamesThatAreNotUnicodeSurvive", func(t *testing.T) {
		c := open(t)
		sh(t, c, `mkdir d; printf x > "$(printf 'd/a\377b')"; printf y > "$(printf 'd/\357\276\200')"`)
		list := names(t, c, "d")
		if len(list) != 2 {
			t.Fatalf("%q", list)
		}
		for i, want := range []string{"x", "y"} {
			if got := get(t, c, "d/"+list[i]); got != want {
				t.Errorf("%q: %q", list[i], got)
			}
			if err := c.Remove(within(t), "d/"+list[i], sandbox.RemoveFileOptions{}); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("ErrorsAreTold", func(t *testing.T) {
		c := open(t)
		sh(t, c, "mkdir dir; echo x > file")
		read := func(p string) error { _, _, err := c.ReadFile(within(t), p, sandbox.ReadFileOptions{}); return err }
		write := func(p string) error {
			_, _, err := c.WriteFile(within(t), p, strings.NewReader("x"), sandbox.WriteFileOptions{})
			return err
		}
		long := strings.Repeat("x", 256)
		for name, tt := range map[string]struct {
			err  error
			want fault.Code
		}{
			"ReadOfNothing":          {read("nothing"), fault.NotFound},
			"ReadOfADirectory":       {read("dir"), fault.Invalid},
			"ReadThroughAFile":       {read("file/x"), fault.Invalid},
			"ReadOfNoPath":           {read(""), fault.Invalid},
			"ReadOfANUL":             {read("a\x00b"), fault.Invalid},
			"ReadOfALongName":        {read(long), fault.Invalid},
			"ReadOfALongPath":        {read(strings.Repeat("x/", 3000)), fault.Invalid},
			"WriteToADirectory":      {write("dir"), fault.Invalid},
			"WriteToASlash":          {write("dir/new/"), fault.Invalid},
			"WriteToDots":            {write("dir/.."), fault.Invalid},
			"WriteToALongName":       {write(long), fault.Invalid},
			"WriteThroughAFile":      {write("file/x"), fault.Invalid},
			"MkdirOfWhatExists":      {c.Mkdir(within(t), "dir", sandbox.MakeDirOptions{}), fault.Exists},
			"MkdirOverAFile":         {c.Mkdir(within(t), "file", sandbox.MakeDirOptions{Parents: true}), fault.Exists},
			"MkdirInNothing":         {c.Mkdir(within(t), "no/dir", sandbox.MakeDirOptions{}), fault.NotFound},
			"RemoveOfNothing":        {c.Remove(within(t), "nothing", sandbox.RemoveFileOptions{}), fault.NotFound},
			"RemoveOfTheWorkspace":   {c.Remove(within(t), "/workspace/", sandbox.RemoveFileOptions{Recursive: true}), fault.Denied},
			"RemoveOfTheRoot":        {c.Remove(within(t), "/..", sandbox.RemoveFileOptions{Recursive: true}), fault.Denied},
			"MoveOfNothing":          {c.Move(within(t), "nothing", "x", sandbox.MoveFileOptions{}), fault.NotFound},
			"MoveToWhatExists":       {c.Move(within(t), "file", "dir", sandbox.MoveFileOptions{}), fault.Exists},
			"MoveOfAFileOverADir":    {c.Move(within(t), "file", "dir", sandbox.MoveFileOptions{Overwrite: true}), fault.Invalid},
			"MoveIntoItself":         {c.Move(within(t), "dir", "dir/sub", sandbox.MoveFileOptions{}), fault.Invalid},
			"MoveOfTheWorkspace":     {c.Move(within(t), "/workspace", "/workspace/x", sandbox.MoveFileOptions{}), fault.Denied},
			"StatOfNothing":          {func() error { _, err := c.Stat(within(t), "nothing", ""); return err }(), fault.NotFound},
			"StatByAnUnknownUser":    {func() error { _, err := c.Stat(within(t), "file", "toor"); return err }(), fault.Invalid},
			"ListOfNothing":          {func() error { _, _, err := c.List(within(t), "nothing", sandbox.ListFilesOptions{}); return err }(), fault.NotFound},
			"ModeOutOfBounds":        {c.Mkdir(within(t), "x", sandbox.MakeDirOptions{Mode: fs.ModeSetgid | 0o755}), fault.Invalid},
			"StatThroughTooManyDots": {func() error { _, err := c.Stat(within(t), strings.Repeat("../", 1000)+"nothing", ""); return err }(), fault.NotFound},
		} {
			t.Run(name, func(t *testing.T) { wantCode(t, tt.err, tt.want) })
		}
		if got := sh(t, c, "ls -A; cat file"); got != "dir\nfile\nx\n" {
			t.Errorf("something changed: %q", got)
		}
	})
	if o.Unprivileged {
		t.Run("RightsAreTheUsers", func(t *testing.T) { testRights(t, open(t), o) })
	}
}

// failing is a reader that fails.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// testRights tries what the unprivileged user may not do.
func testRights(t *testing.T, c *agent.Client, o Options) {
	sh(t, c, "mkdir secret; echo x > secret/f; chmod 0 secret; echo ro > ro; chmod 400 ro; mkdir closed; echo x > closed/f; chmod 555 closed")
	_, _, err := c.ReadFile(within(t), "secret/f", sandbox.ReadFileOptions{})
	wantCode(t, err, fault.Denied)
	_, _, err = c.List(within(t), "secret", sandbox.ListFilesOptions{})
	wantCode(t, err, fault.Denied)
	_, _, err = c.WriteFile(within(t), "ro", strings.NewReader("x"), sandbox.WriteFileOptions{})
	wantCode(t, err, fault.Denied)
	_, _, err = c.WriteFile(within(t), "closed/g", strings.NewReader("x"), sandbox.WriteFileOptions{})
	wantCode(t, err, fault.Denied)
	wantCode(t, c.Remove(within(t), "closed", sandbox.RemoveFileOptions{Recursive: true}), fault.Denied)
	wantCode(t, c.Move(within(t), "closed/f", "f", sandbox.MoveFileOptions{}), fault.Denied)
	wantCode(t, c.Mkdir(within(t), "closed/d", sandbox.MakeDirOptions{}), fault.Denied)
	if fault.As(err).Remedy == "" {
		t.Error("a denial without a next step")
	}
	put(t, c, "mine", "x")
	if got := sh(t, c, "stat -c %u mine; id -u"); len(strings.Fields(got)) != 2 || strings.Fields(got)[0] != strings.Fields(got)[1] {
		t.Errorf("owner and user: %q", got)
	}
	if o.OwnRoot {
		_, _, err = c.WriteFile(within(t), "/etc/sandpit-test", strings.NewReader("x"), sandbox.WriteFileOptions{})
		wantCode(t, err, fault.Denied)
	}
	if o.HasRoot {
		if _, _, err := c.WriteFile(within(t), "closed/f", strings.NewReader("root"), sandbox.WriteFileOptions{User: "root"}); err != nil {
			t.Fatal(err)
		}
		if got := sh(t, c, "cat closed/f; echo y >> closed/f"); got != "root" {
			t.Errorf("%q", got)
		}
	}
	sh(t, c, "chmod 755 secret closed")
}

func testTree(t *testing.T, open func(*testing.T) *agent.Client, o Options) {
	t.Run("MkdirMakesWithParentsAndMode", func(t *testing.T) {
		c := open(t)
		if err := c.Mkdir(within(t), "a", sandbox.MakeDirOptions{Mode: 0o700}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := c.Mkdir(within(t), "a/b/c", sandbox.MakeDirOptions{Parents: true}); err != nil {
				t.Fatal(err)
			}
		}
		if got := sh(t, c, "stat -c %a a a/b a/b/c"); got != "700\n755\n755\n" {
			t.Errorf("%q", got)
		}
	})
	t.Run("MoveRenames", func(t *testing.T) {
		c := open(t)
		sh(t, c, "mkdir -p a/b c; echo x > a/b/f; echo y > g; ln -s a/b/f l")
		for _, m := range [][2]string{{"a", "c/a"}, {"g", "h"}, {"l", "k"}} {
			if err := c.Move(within(t), m[0], m[1], sandbox.MoveFileOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Move(within(t), "c/a/b/f", "h", sandbox.MoveFileOptions{Overwrite: true}); err != nil {
			t.Fatal(err)
		}
		if got := sh(t, c, "cat h; ls -A . c/a/b; readlink k"); got != "x\n.:\nc\nh\nk\n\nc/a/b:\na/b/f\n" {
			t.Errorf("%q", got)
		}
	})
	t.Run("RemoveTakesTheLinkAndNotItsTarget", func(t *testing.T) {
		c := open(t)
		sh(t, c, "mkdir keep d; echo x > keep/f; ln -s ../keep d/link; ln -s keep top")
		if err := c.Remove(within(t), "top", sandbox.RemoveFileOptions{Recursive: true}); err != nil {
			t.Fatal(err)
		}
		wantCode(t, c.Remove(within(t), "d", sandbox.RemoveFileOptions{}), fault.State)
		if err := c.Remove(within(t), "d", sandbox.RemoveFileOptions{Recursive: true}); err != nil {
			t.Fatal(err)
		}
		if got := sh(t, c, "ls -A . keep"); got != ".:\nkeep\n\nkeep:\nf\n" {
			t.Errorf("%q", got)
		}
		sh(t, c, "mkdir empty")
		if err := c.Remove(within(t), "empty", sandbox.RemoveFileOptions{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("RemoveTakesTreesOfAnyDepth", func(t *testing.T) {
		c := open(t)
		sh(t, c, "p=$(printf 'd/%.0s' $(seq 1000)); mkdir -p deep/$p && cd deep/$p && echo x > f && mkdir -p $p && echo x > $p/f")
		if err := c.Remove(within(t), "deep", sandbox.RemoveFileOptions{Recursive: true}); err != nil {
			t.Fatal(err)
		}
		if got := names(t, c, "."); len(got) != 0 {
			t.Errorf("left: %q", got)
		}
	})
	if o.OwnRoot {
		t.Run("MoveCopiesBetweenFileSystems", func(t *testing.T) {
			c := open(t)
			sh(t, c, "mkdir -p tree/sub; echo x > tree/sub/f; chmod 640 tree/sub/f; touch -d 2001-02-03 tree/sub/f; ln -s sub/f tree/l; head -c 3000000 /dev/urandom > tree/big; sha256sum < tree/big > sum; echo y > f")
			if err := c.Move(within(t), "tree", "/dev/shm/moved", sandbox.MoveFileOptions{}); err != nil {
				t.Fatal(err)
			}
			if got := sh(t, c, "ls -A; cat /dev/shm/moved/l; stat -c '%a %y' /dev/shm/moved/sub/f | cut -c1-14; sha256sum < /dev/shm/moved/big | cmp - sum && echo same"); got != "f\nsum\nx\n640 2001-02-03\nsame\n" {
				t.Errorf("%q", got)
			}
			wantCode(t, c.Move(within(t), "f", "/dev/shm/moved", sandbox.MoveFileOptions{}), fault.Exists)
			if err := c.Move(within(t), "/dev/shm/moved", "back", sandbox.MoveFileOptions{}); err != nil {
				t.Fatal(err)
			}
			sh(t, c, "cat back/l; mkfifo back/pipe")
			wantCode(t, c.Move(within(t), "back", "/dev/shm/moved", sandbox.MoveFileOptions{}), fault.Invalid)
			if got := sh(t, c, "ls -A back /dev/shm | grep -v '^$'"); strings.Contains(got, "sandpit") || !strings.Contains(got, "pipe") {
				t.Errorf("%q", got)
			}
		})
	}
}

func numbered(n int) string { return fmt.Sprintf("f%03d", n) }
