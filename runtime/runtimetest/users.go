// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"os"
	"strings"
	"testing"

	"sandpit.dev/runtime"
)

func users(t *testing.T, s *suite) {
	tries := s.tries(t)
	run := func(name string, test func(t *testing.T)) {
		if tries(name) {
			t.Run(name, test)
		}
	}
	b := s.create(t, s.spec())
	run("CommandsRunAsTheSandboxUser", func(t *testing.T) {
		if got := b.ok("id -u; id -g; id -un; echo $HOME; whoami"); got != "1000\n1000\nsandbox\n/home/sandbox\nsandbox" {
			t.Errorf("got %q", got)
		}
	})
	run("TheUserWritesItsOwnDirectoriesAndNoOthers", func(t *testing.T) {
		b.ok("for d in /workspace /artifacts /tmp /var/tmp $HOME; do echo x > $d/probe && rm $d/probe || exit 1; done")
		for _, d := range []string{"/", "/usr", "/etc", "/usr/bin", "/var/lib", "/root", "/opt", "/dev", "/sys", "/proc"} {
			if o := b.run("echo x > " + d + "/probe"); o.ExitCode == 0 {
				t.Errorf("the user could write to %s", d)
			}
		}
		if o := b.run("touch /usr/x"); !strings.Contains(o.Stderr, "Read-only file system") {
			t.Errorf("touch /usr/x says %q, want that it is a read-only file system", o.Stderr)
		}
	})
	run("TheSandboxRootWritesTheSystemAndTheUserSeesIt", func(t *testing.T) {
		s.need(t, runtime.RootUser)
		o := b.asRoot("id -u; printf '#!/bin/sh\necho from root\n' > /usr/local/bin/tool && chmod 755 /usr/local/bin/tool; chown 1000 /usr/local/bin/tool; echo nobody > /etc/made")
		if o.ExitCode != 0 || o.Stdout != "0\n" {
			t.Fatalf("as root: %+v", o)
		}
		if got := b.ok("tool; cat /etc/made"); got != "from root\nnobody" {
			t.Errorf("the user sees %q", got)
		}
		b.ok("echo mine > /workspace/mine")
		if o := b.asRoot("cat /workspace/mine; rm /workspace/mine"); o.Stdout != "mine\n" {
			t.Errorf("root sees %q", o.Stdout)
		}
	})
	run("RootsProgramsAndHomeAreNotTheUsers", func(t *testing.T) {
		s.need(t, runtime.RootUser)
		places := b.asRoot(`echo $PATH:$HOME | tr : '\n'`).Stdout
		if !strings.Contains(places, "/usr/bin\n") || !strings.HasSuffix(places, "\n/root\n") {
			t.Errorf("root's programs and home are at\n%s", places)
		}
		for place := range strings.Lines(places) {
			if o := b.run("touch " + strings.TrimSpace(place) + "/probe"); o.ExitCode == 0 {
				t.Errorf("the user could write to %s", place)
			}
		}
	})
	run("ItsOwnHostNameAndOnlyLoopback", func(t *testing.T) {
		if got := b.ok("hostname; ls /sys/class/net 2>/dev/null; cut -d: -f1 /proc/net/dev | tail -n +3 | tr -d ' '"); got != "box\nlo" {
			t.Errorf("got %q", got)
		}
		b.ok("python3 -c 'import socket\ns=socket.create_server((\"127.0.0.1\",0)); c=socket.create_connection(s.getsockname()); print(c)'")
	})
	run("ItsHostNameCanChange", func(t *testing.T) {
		n, ok := b.Instance.(runtime.Namer)
		if !ok {
			t.Skip("the driver cannot name what is up anew")
		}
		here, err := os.Hostname()
		if err != nil {
			t.Fatal(err)
		}
		if err := n.SetHostname(t.Context(), "box-2"); err != nil {
			t.Fatal(err)
		}
		if got := b.ok("hostname"); got != "box-2" {
			t.Errorf("got %q", got)
		}
		if now, err := os.Hostname(); err != nil || now != here {
			t.Errorf("the host's own was %q and is %q, %v", here, now, err)
		}
		other := s.create(t, s.spec())
		if got := other.ok("hostname"); got != "box" {
			t.Errorf("another sandbox's is %q", got)
		}
	})
	run("UsualProgramsWork", func(t *testing.T) {
		for _, cmd := range []string{
			"python3 -c 'import threading,subprocess,multiprocessing as m,tempfile; t=threading.Thread(target=print); t.start(); t.join(); print(subprocess.check_output([\"id\",\"-u\"])); p=m.Process(target=print); p.start(); p.join(); assert p.exitcode==0'",
			"echo a | sed s/a/b/ | grep b >/dev/null",
			"ps aux >/dev/null && free >/dev/null && df >/dev/null",
			"mkfifo /tmp/p && (echo x > /tmp/p & read y < /tmp/p; [ $y = x ])",
			"script -qc 'tty' /dev/null | grep -q pts || python3 -c 'import pty; pty.spawn([\"tty\"])' | grep pts",
			"dd if=/dev/zero of=/dev/shm/x bs=1M count=4 2>/dev/null && rm /dev/shm/x",
			"head -c 16 /dev/urandom | wc -c | grep -q 16",
			"sqlite3 :memory: 'select 1' 2>/dev/null || python3 -c 'import sqlite3; c=sqlite3.connect(\"/workspace/x.db\"); c.execute(\"create table t(a)\"); c.commit()'",
			"ls -la /proc/self/fd /dev/fd/ >/dev/null; cat <(echo x) | grep -q x",
		} {
			if o := b.run(cmd); o.ExitCode != 0 {
				t.Errorf("%s: exit code %d, stdout %q, stderr %q", cmd, o.ExitCode, o.Stdout, o.Stderr)
			}
		}
	})
}
