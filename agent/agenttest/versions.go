// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// once runs do before the first byte is read.
type once struct {
	io.Reader
	do func()
}

func (r *once) Read(p []byte) (int, error) {
	if r.do != nil {
		r.do()
		r.do = nil
	}
	return r.Reader.Read(p)
}

func testVersions(t *testing.T, open func(*testing.T) *agent.Client, o Options) {
	version := func(t *testing.T, c *agent.Client, path string) string {
		t.Helper()
		fi, err := c.Stat(within(t), path, "")
		if err != nil {
			t.Fatal(err)
		}
		return fi.Version
	}
	write := func(t *testing.T, c *agent.Client, path, content string, w sandbox.WriteFileOptions) (string, error) {
		t.Helper()
		fi, _, err := c.WriteFile(within(t), path, strings.NewReader(content), w)
		return fi.Version, err
	}
	is := func(v ...string) sandbox.WriteFileOptions {
		return sandbox.WriteFileOptions{If: sandbox.FileCondition{Versions: v}}
	}
	absent := sandbox.WriteFileOptions{If: sandbox.FileCondition{Absent: true}, MakeParents: true}
	// unmet checks that a call was refused, with a version, and that nothing is left of it.
	unmet := func(t *testing.T, c *agent.Client, err error, path, content, now string) {
		t.Helper()
		wantCode(t, err, fault.PreconditionFailed)
		if e := fault.As(err); e.Version != now || e.Remedy == "" {
			t.Errorf("got the version %q and the remedy %q, want %q", e.Version, e.Remedy, now)
		}
		if got := get(t, c, path); got != content {
			t.Errorf("the file has %q, want %q", got, content)
		}
		if left := sh(t, c, "find . -name '.sandpit-*'"); left != "" {
			t.Errorf("left behind: %q", left)
		}
	}
	t.Run("AreThoseOfContents", func(t *testing.T) {
		c := open(t)
		put(t, c, "f", "one")
		first := version(t, c, "f")
		if first == "" || version(t, c, "f") != first {
			t.Fatalf("got %q, and then another", first)
		}
		fi, r, err := c.ReadFile(within(t), "f", sandbox.ReadFileOptions{Version: true, Offset: 1})
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		if fi.Version != first {
			t.Errorf("a read tells %q, want %q", fi.Version, first)
		}
		if fi, r, err := c.ReadFile(within(t), "f", sandbox.ReadFileOptions{}); err != nil || fi.Version != "" {
			t.Errorf("got %q, %v, though nobody asked", fi.Version, err)
		} else {
			r.Close()
		}
		seen := []string{first}
		for _, line := range []string{"printf two > f", "printf ONE | dd of=f conv=notrunc 2>/dev/null", "touch -d @1 f", "printf one > g; touch -r f g; mv g f", "cp f h; mv h f"} {
			sh(t, c, line)
			v := version(t, c, "f")
			if slices.Contains(seen, v) || v == "" {
				t.Errorf("%s: got a version of before", line)
			}
			seen = append(seen, v)
		}
		sh(t, c, "mkdir d; ln -s f l; mkfifo p")
		for _, name := range []string{"d", "l", "p"} {
			if v := version(t, c, name); v != "" {
				t.Errorf("%s has the version %q", name, v)
			}
		}
	})
	t.Run("AWriteReplacesTheOneItNames", func(t *testing.T) {
		c := open(t)
		put(t, c, "f", "one")
		first := version(t, c, "f")
		second, err := write(t, c, "f", "two", is("00000000000000000000000000000000", first))
		if err != nil || second == first || second != version(t, c, "f") || get(t, c, "f") != "two" {
			t.Fatalf("got %q after %q, %v", second, first, err)
		}
		_, err = write(t, c, "f", "three", is(first))
		unmet(t, c, err, "f", "two", second)
		third, err := write(t, c, "f", "three", is(second))
		if err != nil || get(t, c, "f") != "three" {
			t.Fatal(err)
		}
		sh(t, c, "ln -s f l")
		if _, err := write(t, c, "l", "through a link", is(third)); err != nil || get(t, c, "f") != "through a link" {
			t.Errorf("through a link: %v", err)
		}
		if _, err := write(t, c, "f", "any", sandbox.WriteFileOptions{If: sandbox.FileCondition{Any: true}}); err != nil || get(t, c, "f") != "any" {
			t.Errorf("any: %v", err)
		}
		// Attributes stay unless there are others, as without a condition.
		with := is(version(t, c, "f"))
		with.Attributes = map[string]string{"k": "v"}
		v, err := write(t, c, "f", "attributes", with)
		if err != nil {
			t.Fatal(err)
		}
		if v, err = write(t, c, "f", "kept", is(v)); err != nil {
			t.Fatal(err)
		}
		if fi, err := c.Stat(within(t), "f", ""); err != nil || fi.Attributes["k"] != "v" || fi.Version != v {
			t.Errorf("got %+v, %v", fi, err)
		}
		with = is(v)
		with.Attributes = map[string]string{}
		if _, err = write(t, c, "f", "none", with); err != nil {
			t.Fatal(err)
		}
		if fi, err := c.Stat(within(t), "f", ""); err != nil || len(fi.Attributes) != 0 {
			t.Errorf("got %+v, %v", fi, err)
		}
	})
	t.Run("WhereThereIsNone", func(t *testing.T) {
		c := open(t)
		v, err := write(t, c, "new/f", "mine", absent)
		if err != nil || v != version(t, c, "new/f") {
			t.Fatalf("got %q, %v", v, err)
		}
		_, err = write(t, c, "new/f", "other", absent)
		unmet(t, c, err, "new/f", "mine", v)
		_, err = write(t, c, "gone", "x", is(v))
		wantCode(t, err, fault.PreconditionFailed)
		_, err = write(t, c, "gone", "x", sandbox.WriteFileOptions{If: sandbox.FileCondition{Any: true}})
		wantCode(t, err, fault.PreconditionFailed)
		deep := is(v)
		deep.MakeParents = true
		_, err = write(t, c, "nowhere/f", "x", deep)
		wantCode(t, err, fault.PreconditionFailed)
		sh(t, c, "test ! -e gone && test ! -e nowhere; mkdir dir; ln -s nothing dangling")
		for _, w := range []sandbox.WriteFileOptions{is(v), absent} {
			_, err = write(t, c, "dir", "x", w)
			wantCode(t, err, fault.PreconditionFailed)
		}
		if _, err = write(t, c, "dangling", "made", absent); err != nil || get(t, c, "nothing") != "made" {
			t.Errorf("through a link to nothing: %v", err)
		}
	})
	t.Run("AChangeWhileTheContentComes", func(t *testing.T) {
		c := open(t)
		// during makes a change while the content of a write comes, which has found the file as it is to be.
		during := func(path string, w sandbox.WriteFileOptions, change func()) error {
			_, _, err := c.WriteFile(within(t), path, &once{strings.NewReader("mine"), func() {
				sh(t, c, "until test -e .sandpit-*; do :; done")
				change()
			}}, w)
			return err
		}
		runs := func(line string) func() { return func() { sh(t, c, line) } }
		for name, change := range map[string]func(){
			"Written":  func() { put(t, c, "f", "theirs") },
			"InPlace":  runs("printf theirs > f"),
			"Exchange": runs("printf theirs > g; mv g f"),
		} {
			put(t, c, "f", "before")
			err := during("f", is(version(t, c, "f")), change)
			t.Log(name)
			unmet(t, c, err, "f", "theirs", version(t, c, "f"))
		}
		err := during("new", absent, runs("printf theirs > new"))
		unmet(t, c, err, "new", "theirs", version(t, c, "new"))
		put(t, c, "f", "before")
		wantCode(t, during("f", is(version(t, c, "f")), runs("rm f; mkdir f")), fault.PreconditionFailed)
		sh(t, c, "rmdir f; printf before > f")
		wantCode(t, during("f", is(version(t, c, "f")), runs("mv f real; ln -s real f")), fault.PreconditionFailed)
		if got := get(t, c, "real"); got != "before" {
			t.Errorf("through a link that came meanwhile: the file has %q", got)
		}
	})
	t.Run("OfManyAtOnceOneWins", func(t *testing.T) {
		c := open(t)
		const writers = 8
		for round := range 10 {
			put(t, c, "f", "before")
			o := is(version(t, c, "f"))
			path := "f"
			if round%2 == 1 {
				o, path = absent, fmt.Sprint("new", round)
			}
			var won atomic.Int32
			var winner atomic.Value
			var all sync.WaitGroup
			for i := range writers {
				all.Go(func() {
					mine := fmt.Sprintf("%d of %d", i, round)
					_, _, err := c.WriteFile(within(t), path, strings.NewReader(mine), o)
					switch {
					case err == nil:
						won.Add(1)
						winner.Store(mine)
					case !fault.Is(err, fault.PreconditionFailed):
						t.Error(err)
					}
				})
			}
			all.Wait()
			if won.Load() != 1 || get(t, c, path) != winner.Load() {
				t.Fatalf("%d of %d writes won, and the file has %q", won.Load(), writers, get(t, c, path))
			}
		}
	})
	t.Run("ARemovalOfTheOneItNames", func(t *testing.T) {
		c := open(t)
		put(t, c, "f", "one")
		first := version(t, c, "f")
		put(t, c, "f", "two")
		err := c.Remove(within(t), "f", sandbox.RemoveFileOptions{If: sandbox.FileCondition{Versions: []string{first}}})
		unmet(t, c, err, "f", "two", version(t, c, "f"))
		sh(t, c, "mkdir d; touch d/kept; ln -s f l")
		for _, name := range []string{"d", "l"} {
			err := c.Remove(within(t), name, sandbox.RemoveFileOptions{Recursive: true, If: sandbox.FileCondition{Versions: []string{version(t, c, "f")}}})
			wantCode(t, err, fault.PreconditionFailed)
		}
		sh(t, c, "test -e d/kept && test -L l")
		if err := c.Remove(within(t), "f", sandbox.RemoveFileOptions{If: sandbox.FileCondition{Versions: []string{version(t, c, "f")}}}); err != nil {
			t.Error(err)
		}
		for _, name := range []string{"f", "none/f"} {
			wantCode(t, c.Remove(within(t), name, sandbox.RemoveFileOptions{If: sandbox.FileCondition{Any: true}}), fault.PreconditionFailed)
		}
	})
	t.Run("ConditionsThatAreNone", func(t *testing.T) {
		c := open(t)
		put(t, c, "f", "kept")
		for _, bad := range []sandbox.FileCondition{
			{Any: true, Absent: true}, {Any: true, Versions: []string{"x"}}, {Absent: true, Versions: []string{"x"}},
			{Versions: make([]string, sandbox.MaxFileVersions+1)},
		} {
			_, err := write(t, c, "f", "new", sandbox.WriteFileOptions{If: bad})
			if code := fault.Of(err); code != fault.Malformed && code != fault.Invalid {
				t.Errorf("%+v: got %v", bad, err)
			}
		}
		if _, err := write(t, c, "f", "new", is("", "*", strings.Repeat("x", 5000), "W/")); !fault.Is(err, fault.PreconditionFailed) {
			t.Errorf("got %v", err)
		}
		if got := get(t, c, "f"); got != "kept" {
			t.Errorf("the file has %q", got)
		}
		broken := errors.New("broken")
		_, _, err := c.WriteFile(within(t), "f", io.MultiReader(strings.NewReader("half"), failing{broken}), is(version(t, c, "f")))
		if !errors.Is(err, broken) || get(t, c, "f") != "kept" {
			t.Errorf("cut off: %v, and the file has %q", err, get(t, c, "f"))
		}
		if o.Unprivileged && o.HasRoot {
			_, err := write(t, c, "/etc/passwd", "x", sandbox.WriteFileOptions{If: sandbox.FileCondition{Any: true}})
			wantCode(t, err, fault.Denied)
		}
	})
}
