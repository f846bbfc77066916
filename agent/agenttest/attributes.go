// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// change changes a file, and fails the test where that fails.
func change(t *testing.T, c *agent.Client, path string, o sandbox.ChangeFileOptions) sandbox.FileChanged {
	t.Helper()
	got, err := c.Change(within(t), path, o)
	if err != nil {
		t.Fatalf("Change %q %+v: %v", path, o, err)
	}
	return got
}

func stat(t *testing.T, c *agent.Client, path string) sandbox.FileInfo {
	t.Helper()
	fi, err := c.Stat(within(t), path, "")
	if err != nil {
		t.Fatalf("Stat %q: %v", path, err)
	}
	return fi
}

func mode(m fs.FileMode) *fs.FileMode { return &m }

func testAttributes(t *testing.T, open func(*testing.T) *agent.Client, o Options) {
	t.Run("AttributesGoWithTheFile", func(t *testing.T) {
		c := open(t)
		write := func(content string, attributes map[string]string) {
			t.Helper()
			fi, _, err := c.WriteFile(within(t), "f", strings.NewReader(content), sandbox.WriteFileOptions{Attributes: attributes})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(fi.Attributes, stat(t, c, "f").Attributes); diff != "" {
				t.Errorf("written and told (-written +told):\n%s", diff)
			}
		}
		has := func(want map[string]string) {
			t.Helper()
			if diff := cmp.Diff(want, stat(t, c, "f").Attributes); diff != "" {
				t.Errorf("attributes (-want +got):\n%s", diff)
			}
		}
		two := map[string]string{"source": "crawl é", "empty": ""}
		write("a", two)
		has(two)
		write("b", nil) // as with the mode, what the old file had stays
		has(two)
		change(t, c, "f", sandbox.ChangeFileOptions{Attributes: map[string]string{"source": "hand", "more": "1"}, Remove: []string{"empty", "none"}})
		has(map[string]string{"source": "hand", "more": "1"})
		got := change(t, c, "f", sandbox.ChangeFileOptions{Attributes: map[string]string{"only": "this"}, Replace: true})
		has(map[string]string{"only": "this"})
		if got.Changed != 1 || got.File.Attributes["only"] != "this" {
			t.Errorf("the answer is %+v", got)
		}
		write("c", map[string]string{})
		has(nil)
		if got := get(t, c, "f"); got != "c" {
			t.Errorf("the file is %q", got)
		}
	})
	t.Run("AttributesAreBounded", func(t *testing.T) {
		c := open(t)
		put(t, c, "f", "kept")
		change(t, c, "f", sandbox.ChangeFileOptions{Attributes: map[string]string{"k": strings.Repeat("v", 2000)}})
		for name, bad := range map[string]map[string]string{
			"too much":        {"k": strings.Repeat("v", sandbox.MaxAttributes)},
			"too much of all": {"a": strings.Repeat("v", 3000)},
			"no key":          {"": "v"},
			"a long key":      {strings.Repeat("k", sandbox.MaxAttributeKey+1): "v"},
			"a blank":         {"a b": "v"},
			"a NUL":           {"k": "a\x00b"},
			"a =":             {"a=b": "v"},
			"an overlay's":    {"overlay.opaque": "y"},
			"no text":         {"k\x00trusted.overlay.opaque": "y"},
		} {
			_, err := c.Change(within(t), "f", sandbox.ChangeFileOptions{Attributes: bad})
			if fault.Of(err) != fault.Invalid {
				t.Errorf("%s: %v", name, err)
			}
			if name == "too much of all" {
				continue // a write replaces all
			}
			_, _, err = c.WriteFile(within(t), "f", strings.NewReader("new"), sandbox.WriteFileOptions{Attributes: bad})
			if fault.Of(err) != fault.Invalid {
				t.Errorf("a write with %s: %v", name, err)
			}
		}
		if got := get(t, c, "f"); got != "kept" || len(stat(t, c, "f").Attributes["k"]) != 2000 {
			t.Errorf("a refused change left %q, %v", got, stat(t, c, "f").Attributes)
		}
		_, err := c.Change(within(t), "f", sandbox.ChangeFileOptions{})
		wantCode(t, err, fault.Invalid)
	})
	t.Run("ModesAreSet", func(t *testing.T) {
		c := open(t)
		sh(t, c, "mkdir -p d/e; echo x > d/f; echo x > d/e/g; ln -s f d/link; ln -s /none d/away; mkfifo d/pipe")
		for _, m := range []fs.FileMode{0o751, 0, 0o640} { // one that lets nobody in, and out of it again
			got := change(t, c, "d/f", sandbox.ChangeFileOptions{Mode: mode(m)})
			if got.File.Mode != m || stat(t, c, "d/f").Mode != m {
				t.Errorf("mode %o: got %+v", m, got.File)
			}
		}
		got := change(t, c, "d", sandbox.ChangeFileOptions{Mode: mode(0o700), Recursive: true})
		if got.Changed != 5 || got.LeftAll != 0 || got.Ended != "" || got.File.Mode != 0o700 {
			t.Errorf("of a tree: %+v", got)
		}
		for _, name := range []string{"d", "d/f", "d/e", "d/e/g", "d/pipe"} {
			if m := stat(t, c, name).Mode; m != 0o700 {
				t.Errorf("%s has mode %o", name, m)
			}
		}
		got = change(t, c, "d", sandbox.ChangeFileOptions{Mode: mode(0), Recursive: true})
		if got.Changed != 5 {
			t.Errorf("a tree that is shut: %+v", got)
		}
		got = change(t, c, "d", sandbox.ChangeFileOptions{Mode: mode(0o755), Recursive: true})
		if got.Changed != 5 || got.LeftAll != 0 {
			t.Errorf("a tree that is opened: %+v", got)
		}
		_, err := c.Change(within(t), "d/f", sandbox.ChangeFileOptions{Mode: mode(0o755 | fs.ModeSetuid)})
		wantCode(t, err, fault.Invalid)
		_, err = c.Change(within(t), "none", sandbox.ChangeFileOptions{Mode: mode(0o755)})
		wantCode(t, err, fault.NotFound)
	})
	t.Run("OwnersHaveTheNamesOfTheSandbox", func(t *testing.T) {
		c := open(t)
		put(t, c, "f", "x")
		for _, name := range []string{"nobody-of-that-name", "-1", "4294967295", "99999999999", "1e3", "../etc"} {
			_, err := c.Change(within(t), "f", sandbox.ChangeFileOptions{Owner: name})
			wantCode(t, err, fault.Invalid)
			_, err = c.Change(within(t), "f", sandbox.ChangeFileOptions{Group: name})
			wantCode(t, err, fault.Invalid)
		}
		if o.OwnRoot {
			want := strings.Fields(sh(t, c, "stat -c '%U %G' f"))
			if f := stat(t, c, "f"); f.Owner != want[0] || f.Group != want[1] {
				t.Errorf("owner and group are %q %q, inside %q", f.Owner, f.Group, want)
			}
			list, _, err := c.List(within(t), ".", sandbox.ListFilesOptions{})
			if err != nil || len(list) != 1 || list[0].Owner != want[0] || list[0].Group != want[1] {
				t.Errorf("a list has %+v %v", list, err)
			}
			// To its own owner and group: what who owns a file may do.
			change(t, c, "f", sandbox.ChangeFileOptions{Owner: want[0], Group: want[1]})
		}
		if o.OwnRoot && o.HasRoot {
			got := change(t, c, "f", sandbox.ChangeFileOptions{User: sandbox.UserRoot, Owner: "root", Group: "0"})
			if got.File.UID != 0 || got.File.GID != 0 || got.File.Owner != "root" {
				t.Errorf("given to root: %+v", got.File)
			}
			if o.Unprivileged {
				_, err := c.Change(within(t), "f", sandbox.ChangeFileOptions{Mode: mode(0o777)})
				wantCode(t, err, fault.Denied)
				_, err = c.Change(within(t), "f", sandbox.ChangeFileOptions{Owner: "1000"})
				wantCode(t, err, fault.Denied)
			}
		}
	})
	t.Run("HostileAccountsAreOnlyNames", func(t *testing.T) {
		if o.OwnRoot && !o.HasRoot {
			return // nobody inside can write them
		}
		c := open(t)
		put(t, c, "f", "x")
		id := stat(t, c, "f").UID
		user := ""
		if o.OwnRoot {
			user = sandbox.UserRoot
		}
		hostile := fmt.Sprintf("line\x1b[31m:x:%d:\na/b:x:%d:\n%s:x:%d:\n:x:%d:\nx:x:-1:\nx:x:4294967295:\nwithout\n\xff\xfe:x:%d:\nplain:x:%d:\nlater:x:%d:\n%s",
			id, id, strings.Repeat("n", 100), id, id, id, id, id, strings.Repeat("many:x:7777:\n", 200_000))
		_, _, err := c.WriteFile(within(t), "/etc/passwd", strings.NewReader(hostile), sandbox.WriteFileOptions{User: user, MakeParents: true})
		if err != nil {
			t.Fatal(err)
		}
		if f := stat(t, c, "f"); f.Owner != "plain" {
			t.Errorf("the owner is %q", f.Owner)
		}
		if err := c.Remove(within(t), "/etc/passwd", sandbox.RemoveFileOptions{User: user}); err != nil {
			t.Fatal(err)
		}
		if err := c.Mkdir(within(t), "/etc/passwd", sandbox.MakeDirOptions{User: user}); err != nil {
			t.Fatal(err)
		}
		if f := stat(t, c, "f"); f.Owner != "" || f.UID != id {
			t.Errorf("without a file of users the owner is %q, %d", f.Owner, f.UID)
		}
	})
	t.Run("ChangesGoThroughNoLink", func(t *testing.T) {
		c := open(t)
		sh(t, c, "mkdir -p real/in; echo x > real/f; chmod 644 real/f; chmod 755 real real/in; ln -s real dir; ln -s real/f link; ln -s /proc/sys/kernel/core_pattern kernel; ln -s /proc/self/fd/0 magic; ln -s . loop; mkdir tree; ln -s ../real tree/out; ln -s ../real/f tree/file")
		for _, name := range []string{"link", "dir", "dir/f", "dir/in", "kernel", "magic", "loop/real/f", "dir/.", "tree/out/f"} {
			for _, o := range []sandbox.ChangeFileOptions{
				{Mode: mode(0o777)}, {Mode: mode(0o777), Recursive: true}, {Owner: "0"}, {Attributes: map[string]string{"k": "v"}},
			} {
				_, err := c.Change(within(t), name, o)
				if fault.Of(err) != fault.Invalid {
					t.Errorf("%s %+v: %v", name, o, err)
				}
			}
		}
		got := change(t, c, "tree", sandbox.ChangeFileOptions{Mode: mode(0o777), Recursive: true, Attributes: map[string]string{"k": "v"}})
		if got.Changed != 1 {
			t.Errorf("of the tree it changed %+v", got)
		}
		for name, want := range map[string]fs.FileMode{"real": 0o755, "real/f": 0o644, "real/in": 0o755} {
			if f := stat(t, c, name); f.Mode != want || f.Attributes != nil {
				t.Errorf("%s has mode %o, attributes %v", name, f.Mode, f.Attributes)
			}
		}
		if o.OwnRoot {
			for _, name := range []string{"/proc/sys/kernel/core_pattern", "/proc/self/mem", "/proc", "/sys/kernel", "/dev/null"} {
				_, err := c.Change(within(t), name, sandbox.ChangeFileOptions{Mode: mode(0o777)})
				if code := fault.Of(err); code != fault.Denied && code != fault.NotFound && code != fault.Invalid {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	})
	t.Run("AChangeSurvivesExchangedNames", func(t *testing.T) {
		c := open(t)
		sh(t, c, "mkdir out; echo secret > out/f; chmod 600 out/f; chmod 755 out; mkdir -p d/a")
		p := start(t, c, agent.Command{Shell: `while [ ! -e stop ]; do rm -rf d/a; ln -s ../out d/a; rm d/a; mkdir d/a; ln -s ../../out/f d/a/f; rm d/a/f; echo x > d/a/f; done`, MaxStderr: 1})
		for range 200 {
			_, err := c.Change(within(t), "d", sandbox.ChangeFileOptions{Mode: mode(0o777), Recursive: true, Attributes: map[string]string{"k": "v"}})
			if err != nil {
				t.Fatal(err)
			}
			_, _ = c.Change(within(t), "d/a/f", sandbox.ChangeFileOptions{Mode: mode(0o777), Attributes: map[string]string{"k": "v"}}) // it is there, a link, or not
		}
		put(t, c, "stop", "")
		collect(t, p)
		if f, d := stat(t, c, "out/f"), stat(t, c, "out"); f.Mode != 0o600 || f.Attributes != nil || d.Mode != 0o755 {
			t.Errorf("a link was followed: %+v %+v", f, d)
		}
	})
	t.Run("LinksAreToldByWhatTheyLeadTo", func(t *testing.T) {
		c := open(t)
		sh(t, c, "mkdir d; echo x > f; ln -s d to-dir; ln -s f to-file; ln -s to-file twice; ln -s none to-none; ln -s loop loop; mkfifo pipe; ln -s pipe to-pipe; ln -s /proc/self/fd/0 magic")
		want := map[string]sandbox.FileType{"to-dir": sandbox.Directory, "to-file": sandbox.RegularFile, "twice": sandbox.RegularFile, "to-none": "", "loop": "", "to-pipe": sandbox.OtherFile, "magic": ""}
		list, _, err := c.List(within(t), ".", sandbox.ListFilesOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got := make(map[string]sandbox.FileType)
		for _, f := range list {
			if f.Type == sandbox.Symlink {
				got[f.Name] = f.TargetType
				if one := stat(t, c, f.Name); one.TargetType != f.TargetType || one.Target != f.Target {
					t.Errorf("%s: stat tells %+v, a list %+v", f.Name, one, f)
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("targets (-want +got):\n%s", diff)
		}
	})
	t.Run("ATreeIsListedToADepth", func(t *testing.T) {
		c := open(t)
		sh(t, c, "mkdir -p a/b/c .git/x; echo 1 > a/b/c/f; echo 1 > a.txt; echo 1 > a/z; ln -s a link; for i in 1 2 3; do echo $i > a/b/$i; done")
		tree := func(o sandbox.ListFilesOptions) ([]string, bool) {
			t.Helper()
			list, more, err := c.List(within(t), ".", o)
			if err != nil {
				t.Fatal(err)
			}
			got := []string{}
			for _, f := range list {
				got = append(got, strings.TrimPrefix(f.Path, "/workspace/"))
			}
			return got, more
		}
		all := []string{".git", ".git/x", "a", "a/b", "a/b/1", "a/b/2", "a/b/3", "a/b/c", "a/b/c/f", "a/z", "a.txt", "link"}
		if got, more := tree(sandbox.ListFilesOptions{Depth: 32}); more || !slices.Equal(got, all) {
			t.Errorf("got %q %v, want %q", got, more, all)
		}
		if got, more := tree(sandbox.ListFilesOptions{Depth: 2}); more || !slices.Equal(got, []string{".git", ".git/x", "a", "a/b", "a/z", "a.txt", "link"}) {
			t.Errorf("two levels: %q %v", got, more)
		}
		var pages []string
		after := ""
		for range len(all) {
			got, more := tree(sandbox.ListFilesOptions{Depth: 32, Limit: 2, After: after})
			pages = append(pages, got...)
			if !more {
				break
			}
			after = got[len(got)-1]
		}
		if !slices.Equal(pages, all) {
			t.Errorf("in pages: %q", pages)
		}
		for _, o := range []sandbox.ListFilesOptions{{Depth: 33}, {Depth: 2, Limit: -1}, {Depth: 2, Limit: 100_001}} {
			_, _, err := c.List(within(t), ".", o)
			wantCode(t, err, fault.Invalid)
		}
		_, _, err := c.List(within(t), "a.txt", sandbox.ListFilesOptions{Depth: 3})
		wantCode(t, err, fault.Invalid)
		if o.OwnRoot {
			_, _, err := c.List(within(t), "/proc", sandbox.ListFilesOptions{Depth: 3})
			wantCode(t, err, fault.Denied)
		}
	})
	t.Run("ATreeOfTooMuchIsCut", func(t *testing.T) {
		c := open(t)
		sh(t, c, `for i in $(seq 40); do mkdir d; cd d; seq -f 'f-%06g' 1 200 | xargs touch; done`)
		for _, tt := range []struct {
			limit, want int
			more        bool
		}{{5000, 5000, true}, {20_000, 32*1 + 31*200, false}} {
			list, more, err := c.List(within(t), ".", sandbox.ListFilesOptions{Depth: 32, Limit: tt.limit})
			if err != nil || len(list) != tt.want || more != tt.more {
				t.Errorf("at most %d: got %d, more %v, %v", tt.limit, len(list), more, err)
			}
		}
		sh(t, c, `n=$(printf '%0250d' 1); mkdir w; cd w; for i in $(seq 20); do mkdir $n; cd $n; done`) // no path could name what is in the last
		list, more, err := c.List(within(t), "w", sandbox.ListFilesOptions{Depth: 32})
		if err != nil || !more || len(list) != 16 {
			t.Errorf("of long paths: got %d, more %v, %v", len(list), more, err)
		}
	})
	if os.Getenv("SANDPIT_SOAK") == "" { // the rest makes a million files
		return
	}
	t.Run("SoakAMillionFilesAreListedInPages", func(t *testing.T) {
		const levels, each, most = 32, 31_250, 100_000
		c := open(t)
		for level := range levels {
			at := strings.Repeat("d/", level+1)
			sh(t, c, fmt.Sprintf(`mkdir %s && cd %s && seq -f 'f-%%06g' 1 %d | xargs touch`, at, at, each))
		}
		seen, last, pages := 0, "", 0
		for more := true; more; pages++ {
			list, m, err := c.List(within(t), ".", sandbox.ListFilesOptions{Depth: levels, Limit: most, After: last})
			if err != nil || len(list) == 0 || m && len(list) != most {
				t.Fatalf("page %d: %d entries, more %v, %v", pages+1, len(list), m, err)
			}
			seen, last, more = seen+len(list), strings.TrimPrefix(list[len(list)-1].Path, "/workspace/"), m
		}
		if want := levels + (levels-1)*each; seen != want || pages != want/most+1 { // the files of the last level are below the depth
			t.Errorf("%d entries on %d pages, want %d", seen, pages, want)
		}
	})
	t.Run("ALongListIsWhole", func(t *testing.T) {
		c := open(t)
		sh(t, c, `mkdir many; cd many; seq -f 'file-%05g' 1 5000 | xargs touch; ln -s file-00001 link`)
		for _, depth := range []int{1, 2} {
			list, more, err := c.List(within(t), "many", sandbox.ListFilesOptions{Depth: depth})
			if err != nil || more || len(list) != 5001 {
				t.Fatalf("depth %d: %d entries, more %v, %v", depth, len(list), more, err)
			}
			first := list[0]
			for i, f := range list[:5000] {
				if f.Name != fmt.Sprintf("file-%05d", i+1) || f.UID != first.UID || f.Owner != first.Owner || f.Mode != first.Mode {
					t.Fatalf("entry %d is %+v", i, f)
				}
			}
			if list[5000].TargetType != sandbox.RegularFile {
				t.Errorf("the link is %+v", list[5000])
			}
		}
	})
}
