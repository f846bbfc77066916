// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"strings"
	"testing"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func testHostile(t *testing.T, open func(*testing.T) *agent.Client, o Options) {
	t.Run("FifosAreRefusedAndDoNotHang", func(t *testing.T) {
		c := open(t)
		sh(t, c, "mkfifo pipe; ln -s pipe link")
		for _, p := range []string{"pipe", "link"} {
			_, _, err := c.ReadFile(within(t), p, sandbox.ReadFileOptions{})
			wantCode(t, err, fault.Invalid)
			if !strings.Contains(fault.As(err).Message, "fifo") {
				t.Errorf("message: %v", err)
			}
			_, _, err = c.WriteFile(within(t), p, strings.NewReader("x"), sandbox.WriteFileOptions{})
			wantCode(t, err, fault.Invalid)
		}
		if got := sh(t, c, "test -p pipe && test -L link && ls -A"); got != "link\npipe\n" {
			t.Errorf("%q", got)
		}
	})
	if o.OwnRoot {
		t.Run("FilesOfTheKernelAreDenied", func(t *testing.T) { testKernelFiles(t, open(t)) })
		t.Run("DevicesAreRefused", func(t *testing.T) {
			c := open(t)
			for _, p := range []string{"/dev/null", "/dev/zero", "/dev/tty", "/dev/ptmx"} {
				_, _, err := c.ReadFile(within(t), p, sandbox.ReadFileOptions{})
				if code := fault.Of(err); code != fault.Invalid && code != fault.Denied {
					t.Errorf("read of %s: %v", p, err)
				}
				_, _, err = c.WriteFile(within(t), p, strings.NewReader("x"), sandbox.WriteFileOptions{})
				if code := fault.Of(err); code != fault.Invalid && code != fault.Denied {
					t.Errorf("write of %s: %v", p, err)
				}
			}
		})
	}
	t.Run("LinksOutOfTheRootStayIn", func(t *testing.T) {
		c := open(t)
		sh(t, c, "ln -s ../../../../../../../../../../../../etc up; ln -s /proc/self/root/etc magic; ln -s /proc/1/fd fds; ln -s /proc/self/cwd cwd")
		for _, p := range []string{"magic/hostname", "fds/3", "fds/0", "cwd/x"} {
			_, _, err := c.ReadFile(within(t), p, sandbox.ReadFileOptions{})
			switch fault.Of(err) {
			case fault.Invalid, fault.Denied, fault.NotFound:
			default:
				t.Errorf("%s: %v", p, err)
			}
			_, _, err = c.WriteFile(within(t), p, strings.NewReader("x"), sandbox.WriteFileOptions{MakeParents: true})
			if err == nil {
				t.Errorf("%s: written", p)
			}
		}
	})
	t.Run("RemoveIsNotLedAstrayByExchangedDirectories", func(t *testing.T) {
		c := open(t)
		sh(t, c, "mkdir -p keep/sub; for i in $(seq 1 50); do echo x > keep/$i; echo y > keep/sub/$i; done; mkdir d")
		p := start(t, c, agent.Command{Shell: `while [ ! -e stop ]; do mkdir -p d/a; : > d/a/f; mv d/a d/b 2>/dev/null; ln -sfn ../keep d/a; rm -f d/a; ln -sn ../../keep d/b/x 2>/dev/null; done`, MaxStderr: 1})
		for range 60 {
			if err := c.Remove(within(t), "d", sandbox.RemoveFileOptions{Recursive: true}); err != nil && fault.Of(err) == fault.Internal {
				t.Errorf("remove: %v", err)
			}
			_ = c.Mkdir(within(t), "d", sandbox.MakeDirOptions{})
		}
		put(t, c, "stop", "")
		collect(t, p)
		if got := sh(t, c, "ls keep keep/sub | wc -l"); strings.TrimSpace(got) != "104" {
			t.Errorf("of what was linked to, %s lines are left, want 104", strings.TrimSpace(got))
		}
	})
	t.Run("WritesAndListsSurviveExchangedDirectories", func(t *testing.T) {
		c := open(t)
		sh(t, c, "mkdir one two; mkdir d")
		p := start(t, c, agent.Command{Shell: `while [ ! -e stop ]; do rmdir d 2>/dev/null || rm -rf d; ln -s one d; rm -f d; ln -s ../../../../../../.. d; rm -f d; mkdir d; done`, MaxStderr: 1})
		for i := range 200 {
			_, _, err := c.WriteFile(within(t), "d/"+numbered(i), strings.NewReader("x"), sandbox.WriteFileOptions{})
			if fault.Of(err) == fault.Internal {
				t.Errorf("write: %v", err)
			}
			if _, _, err := c.List(within(t), "d", sandbox.ListFilesOptions{}); fault.Of(err) == fault.Internal {
				t.Errorf("list: %v", err)
			}
		}
		put(t, c, "stop", "")
		collect(t, p)
		if got := sh(t, c, "ls -A one two | grep -c sandpit; true"); got != "0\n" {
			t.Errorf("unfinished uploads are left: %q", got)
		}
	})
}

// testKernelFiles tries to use the agent's rights on what it has open.
func testKernelFiles(t *testing.T, c *agent.Client) {
	sh(t, c, "ln -s /proc/self/environ env; ln -s /proc/1/fd fds; ln -s /proc/self/mem mem; ln -s /proc proc")
	paths := []string{"/proc/self/environ", "/proc/1/environ", "/proc/self/mem", "/proc/version", "/proc/sys/kernel/hostname", "env", "mem", "proc/version", "/proc/thread-self/comm"}
	for _, p := range paths {
		_, _, err := c.ReadFile(within(t), p, sandbox.ReadFileOptions{})
		wantCode(t, err, fault.Denied)
		_, _, err = c.WriteFile(within(t), p, strings.NewReader("x"), sandbox.WriteFileOptions{})
		wantCode(t, err, fault.Denied)
	}
	for _, p := range []string{"/proc/1/exe", "/proc/1/fd/0", "/proc/self/cwd"} {
		_, err := c.Stat(within(t), p, "")
		wantCode(t, err, fault.Denied)
	}
	for _, p := range []string{"/proc", "/proc/1/fd", "fds", "proc"} {
		_, _, err := c.List(within(t), p, sandbox.ListFilesOptions{})
		wantCode(t, err, fault.Denied)
	}
	wantCode(t, c.Mkdir(within(t), "/proc/x", sandbox.MakeDirOptions{}), fault.Denied)
	wantCode(t, c.Remove(within(t), "/proc/version", sandbox.RemoveFileOptions{}), fault.Denied)
}
