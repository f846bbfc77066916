// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	_ "embed"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"sandpit.dev/agent"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// hostileSudo speaks to the agent as no sudo does; see its functions.
//
//go:embed sudo.py
var hostileSudo string

func sudos(t *testing.T, s *suite) {
	s.need(t, runtime.Sudo)
	b := s.create(t, s.spec())
	policy := func(t *testing.T, p string) {
		t.Helper()
		if err := b.agent.SetSudo(t.Context(), p); err != nil {
			t.Fatalf("SetSudo(%q): %v", p, err)
		}
	}
	refused := func(t *testing.T, b *box, shell, words string) {
		t.Helper()
		if o := b.run(shell); o.ExitCode != 1 || !strings.Contains(o.Stderr, words) {
			t.Errorf("%q: exit code %d, stderr %q, want 1 and %q", shell, o.ExitCode, o.Stderr, words)
		}
	}
	t.Run("IsOffUntilItIsSwitchedOnAndSaysByWhom", func(t *testing.T) {
		refused(t, b, "sudo id -u", "refused by this sandbox: its sudo is off")
		policy(t, agent.SudoForbidden)
		refused(t, b, "sudo id -u", "refused by the server: its setting allow_root is false")
		policy(t, agent.SudoOn)
		if got := b.ok("sudo id -u"); got != "0" {
			t.Errorf("got %q", got)
		}
		policy(t, agent.SudoOff)
		refused(t, b, "sudo -v", "its sudo is off")
		if o := b.asRoot("sudo id -u"); o.Stdout != "0\n" { // which gains nothing
			t.Errorf("root: %+v", o)
		}
	})
	policy(t, agent.SudoOn)
	t.Run("RunsInTheRootsViewWithTheCallersStreamsAndDirectory", func(t *testing.T) {
		for shell, want := range map[string]string{
			"sudo touch /etc/made && stat -c %u /etc/made":                        "0",
			"cd /etc && sudo sh -c 'pwd; echo x > relative' && cat /etc/relative": "/etc\nx",
			"echo in | sudo cat":                                            "in",
			"sudo sh -c 'echo err >&2' 2>&1 >/dev/null":                     "err",
			"sudo sh -c 'exit 7'; echo $?":                                  "7",
			"sudo sh -c 'kill -9 $$'; echo $?":                              "137",
			"sudo sh -c 'kill -QUIT $$' 2>/dev/null; echo $?":               "131",
			"sudo nowhere 2>&1; echo $?":                                    "sudo: nowhere: command not found\n1",
			"sudo -u sandbox id -un; sudo -u '#1000' id -u":                 "sandbox\n1000",
			"sudo useradd -m bob && sudo -u bob sh -c 'id -un; echo $HOME'": "bob\n/home/bob",
			"sudo -n -H -E -k -- id -u":                                     "0",
			"sudo -nEu root id -u":                                          "0",
			"sudo -k; echo $?; sudo -v; echo $?":                            "0\n0",
			"sudo -l id":                                                    "/usr/bin/id",
			"sudo -i pwd":                                                   "/root",
			"cd /tmp && sudo -s pwd":                                        "/tmp",
			"sudo -s echo 'a  b' '$HOME' ';' x":                             "a  b /root ; x",
			"sudo VISIBLE=1 sh -c 'echo $VISIBLE'":                          "1",
			"sudo sh -c 'echo $SUDO_USER $SUDO_UID $USER $HOME'":            "sandbox 1000 root /root",
			"SECRET=1 sudo sh -c 'echo ${SECRET-none}'; SECRET=1 sudo -E printenv SECRET": "none\n1",
			"sudo sudo sudo id -u":                     "0",
			"sudo sh -c 'ls -l /proc/self/fd | wc -l'": "5",
		} {
			o := b.run(shell)
			if got := strings.TrimSuffix(o.Stdout, "\n"); got != want {
				t.Errorf("%s: %q (stderr %q), want %q", shell, got, o.Stderr, want)
			}
		}
	})
	t.Run("HasNoWayForWhatALoaderOrAnInterpreterReads", func(t *testing.T) {
		for _, name := range []string{"PATH", "LD_PRELOAD", "LD_AUDIT", "GLIBC_TUNABLES", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "BASH_ENV", "ENV", "PERL5OPT", "PERL5LIB",
			"RUBYOPT", "NODE_OPTIONS", "SHELLOPTS", "PS4", "IFS", "JAVA_TOOL_OPTIONS", "BASH_FUNC_id", "GCONV_PATH", "SUDO_UID", "PHPRC", "LUA_INIT"} {
			refused(t, b, "sudo "+name+"=/tmp/x id", "these variables may not be set")
			refused(t, b, "env "+name+"=/tmp/x /dev/sandpit/bin/sudo --preserve-env="+name+" id", "these variables may not be set")
			if got := b.ok("env " + name + "=/tmp/x /dev/sandpit/bin/sudo -E sh -c 'env' | grep -c '^" + name + "=/tmp/x' || true"); got != "0" {
				t.Errorf("sudo -E passes %s", name)
			}
		}
		b.ok("mkdir -p /tmp/p && printf '#!/bin/sh\\necho mine' > /tmp/p/id && chmod 755 /tmp/p/id")
		if got := b.ok("PATH=/tmp/p:$PATH; /dev/sandpit/bin/sudo -E id -u; id() { echo mine; }; export -f id; /dev/sandpit/bin/sudo -E bash -c 'id -u'"); got != "0\n0" {
			t.Errorf("got %q", got)
		}
		refused(t, b, "sudo -u '#-1' id", "is no number of a user")
		refused(t, b, "sudo -u '#4294967295' id", "is no number of a user")
		refused(t, b, "sudo -u nobodyknows id", "is none of this sandbox")
		refused(t, b, "mkdir /tmp/gone && cd /tmp/gone && rmdir /tmp/gone && sudo id", "working directory")
		refused(t, b, "X=$(head -c 100000 /dev/zero | tr '\\0' x); export X; export Y=$X; sudo -E id", "over the bound of 131072; leave -E out")
		refused(t, b, "sudo -g root id", "is none of this sandbox's sudo")
		refused(t, b, "sudo", "no command is given")
		if got := b.ok("X=$(head -c 100000 /dev/zero | tr '\\0' x); export X; export Y=$X; sudo id -u"); got != "0" { // none of it is sent
			t.Errorf("got %q", got)
		}
		if o := b.asRoot("sudo -u bob sh -c 'sudo id -u'"); o.ExitCode != 1 || !strings.Contains(o.Stderr, "may not use sudo") {
			t.Errorf("another user: %+v", o)
		}
	})
	t.Run("DiesWithItsCaller", func(t *testing.T) {
		gone := func(t *testing.T, what string) {
			t.Helper()
			if o := b.run("for i in $(seq 200); do pgrep -fx 'sleep 98765' >/dev/null || exit 0; sleep 0.05; done; exit 1"); o.ExitCode != 0 {
				t.Errorf("%s leaves what it started", what)
			}
		}
		if o := b.exec(agent.Command{Shell: "sudo sleep 98765", Timeout: 500e6}); o.Cause != sandbox.CauseTimeout {
			t.Errorf("the time limit: %+v", o)
		}
		gone(t, "the time limit")
		b.ok("sudo sh -c 'sleep 98765 & sleep 98765' & p=$!; until pgrep -fx 'sleep 98765' >/dev/null; do sleep 0.02; done; kill -9 $p; wait $p; exit 0")
		gone(t, "a caller that is killed")
		if got := b.ok("sudo sh -c 'trap \"echo term; exit 3\" TERM; echo ready; while :; do sleep 0.02; done' > /tmp/out & p=$!; until grep -q ready /tmp/out; do sleep 0.02; done; kill -TERM $p; wait $p; echo $?; cat /tmp/out"); got != "3\nready\nterm" {
			t.Errorf("a signal: %q", got)
		}
		p, err := b.agent.Start(t.Context(), agent.Command{ID: sandbox.NewProcessID(), Shell: "sudo sh -c 'echo ready; sleep 98765'"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := b.agent.Kill(t.Context(), p.ID(), sandbox.CauseKilled); err != nil {
			t.Fatal(err)
		}
		_ = p.Close()
		gone(t, "a kill")
	})
	t.Run("HasTheCallersTerminal", func(t *testing.T) {
		o := b.exec(agent.Command{Shell: "stty size; sudo sh -c 'stty size; [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo typed > /dev/tty; exit 4'; echo $?", Terminal: &agent.Terminal{Cols: 101, Rows: 33}})
		if got := strings.ReplaceAll(o.Stdout, "\r", ""); got != "33 101\n33 101\ntyped\n4\n" {
			t.Errorf("got %q", o.Stdout)
		}
		p, err := b.agent.Start(t.Context(), agent.Command{ID: sandbox.NewProcessID(), Shell: "sudo sh -c 'trap \"echo caught; exit 5\" INT; echo ready; while :; do sleep 0.02; done'; echo $?", Terminal: &agent.Terminal{Cols: 80, Rows: 24}, Timeout: 60e9})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = p.Close() }()
		f, err := p.Next(t.Context())
		if err != nil || !strings.Contains(string(f.Data), "ready") {
			t.Fatalf("%q, %v", f.Data, err)
		}
		if _, err := p.Write([]byte{3}); err != nil { // what Ctrl-C sends
			t.Fatal(err)
		}
		if o, err := collect(t.Context(), p); err != nil || !strings.Contains(o.Stdout, "caught\r\n5\r\n") {
			t.Errorf("%q, %v", o.Stdout, err)
		}
	})
	t.Run("StandsHostileCallers", func(t *testing.T) {
		b.ok("cat > /tmp/sudo.py <<'END'\n" + hostileSudo + "\nEND")
		for _, c := range []struct{ attack, want string }{
			{"descriptors 0", "0 descriptors came"}, {"descriptors 3", "descriptors came"}, {"descriptors 5", "descriptors came"}, {"descriptors 200", "descriptors came"},
			{"twice", "descriptors came twice"}, {"later", "killed"}, {"garbage", "this is no request"}, {"huge", "over the bounds"}, {"environment", "have 199090 bytes, over the bound of 131072"}, {"lengths", "lengths do not fit"},
			{"action", "of no known kind"}, {"slow", "did not arrive"}, {"orphan", "gone"}, {"elsewhere", "cannot be entered"}, {"thousand", "answered 1000"}, {"hurry", "closed"},
		} {
			o := b.run("python3 /tmp/sudo.py " + c.attack)
			if !strings.Contains(o.Stdout, c.want) {
				t.Errorf("%s: %q (stderr %q, %s), want %q", c.attack, o.Stdout, o.Stderr, o.Cause, c.want)
			}
			if got := b.ok("sudo id -u"); got != "0" {
				t.Fatalf("after %s: %q", c.attack, got)
			}
		}
		for _, program := range []string{"cat /dev/sandpit/bin/sudo", "exec 3< /dev/sandpit/bin/sudo", "sudo cat /dev/sandpit/bin/sudo", "sudo rm /dev/sandpit/sudo.sock", "sudo touch /dev/sandpit/bin/x", "sudo umount /dev/sandpit/bin/sudo"} {
			if o := b.run(program); o.ExitCode == 0 {
				t.Errorf("%s: %+v", program, o.Result)
			}
		}
	})
	t.Run("StandsLoops", func(t *testing.T) {
		// 200,000 bytes of variables, again and again: each is refused in the same words.
		got := b.ok("X=$(head -c 100000 /dev/zero | tr '\\0' x); export X; export Y=$X; for i in $(seq 100); do sudo -E id 2>&1; done | sort | uniq -c")
		if f := strings.Fields(got); len(f) == 0 || f[0] != "100" || !strings.Contains(got, "over the bound of 131072; leave -E out") || strings.Contains(got, "\n") {
			t.Errorf("got %q", got)
		}
		// A command of sudo's that begins itself by sudo, and one that goes on without waiting: the time limit ends all of it.
		b.ok("printf '#!/bin/sh\\nsudo /tmp/again\\nsleep 98764' > /tmp/again; printf '#!/bin/sh\\nsudo /tmp/more & sudo /tmp/more & sleep 98764' > /tmp/more; chmod 755 /tmp/again /tmp/more")
		for _, program := range []string{"/tmp/again", "/tmp/more"} {
			if o := b.exec(agent.Command{Shell: program, Timeout: 2e9}); o.Cause != sandbox.CauseTimeout && o.Cause != sandbox.CausePids {
				t.Errorf("%s: %+v", program, o)
			}
			if o := b.run("for i in $(seq 200); do pgrep -f 'tmp/(again|more)|sleep 98764' | grep -vx $$ >/dev/null || exit 0; sleep 0.05; done; ps axww; exit 1"); o.ExitCode != 0 {
				t.Errorf("%s leaves what it started: %s", program, o.Stdout)
			}
			if got := b.ok("sudo id -u"); got != "0" {
				t.Fatalf("after %s: %q", program, got)
			}
		}
	})
	t.Run("LeadsThroughNothingThatTheAgentHasOpen", func(t *testing.T) {
		// The root's home is what the sandbox's root wrote: below /proc/self the agent's descriptors are its own to open.
		if got := b.ok(`sudo cp /etc/passwd /etc/passwd.was
for n in $(seq 0 40); do
	sudo sed -i "s#^root:.*#root:x:0:0::/proc/self/fd/$n:/bin/bash#" /etc/passwd
	sudo -i /bin/pwd
done | sort -u
sudo cp /etc/passwd.was /etc/passwd`); got != "/" {
			t.Errorf("root's home led to %q", got)
		}
		// And so is the way to a program: each that is found below a descriptor would be the host's.
		if got := b.ok(`for n in $(seq 3 60); do
	sudo /proc/self/fd/$n/../../../../../../../bin/echo found $n
	sudo ln -sfn /proc/self/fd/$n/../../../../../../../bin/echo /usr/local/bin/led; sudo led found $n
done 2>/dev/null; true`); got != "" {
			t.Errorf("a path through a descriptor leads to a program: %s", got)
		}
		b.ok("sudo sh -c 'mv /etc/passwd /etc/passwd.was; mkfifo /etc/passwd'; sudo id -u; sudo sh -c 'rm /etc/passwd; mv /etc/passwd.was /etc/passwd'")
	})
	t.Run("IsOfOneSandboxAlone", func(t *testing.T) {
		other := s.create(t, s.spec())
		refused(t, other, "sudo id -u", "its sudo is off")
		other.ok("test ! -e /etc/made")
		b.ok("sudo touch /workspace/by-root")
		other.ok("test ! -e /workspace/by-root")
		if err := other.agent.SetSudo(t.Context(), "everybody"); err == nil {
			t.Error("a policy that is none is taken")
		}
		// What runs as root has no more than a command of root's.
		for _, attempt := range []string{"mount -t tmpfs none /mnt", "unshare -Ur true", "chroot /proc/1/root true", "kill -9 1; false", "cat /proc/1/environ", "mknod /tmp/n c 1 3", "echo 1 > /proc/sys/kernel/sysrq"} {
			mine, roots := b.run("sudo sh -c '"+attempt+"'"), b.asRoot(attempt)
			if mine.ExitCode == 0 || (roots.ExitCode == 0) != (mine.ExitCode == 0) {
				t.Errorf("%s: %d by sudo (%q), %d as root", attempt, mine.ExitCode, mine.Stderr, roots.ExitCode)
			}
		}
		caps := func(o outcome) string { return fmt.Sprint(o.Stdout) }
		const status = "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status"
		if mine, roots := caps(b.run("sudo "+status)), caps(b.asRoot(status)); mine != roots || mine == "" {
			t.Errorf("rights by sudo\n%s, as root\n%s", mine, roots)
		}
	})
	t.Run("IsThereAfterAPauseAndALoop", func(t *testing.T) {
		b.ok("for i in $(seq 100); do sudo true || exit 1; done")
		p, err := b.agent.Start(t.Context(), agent.Command{ID: sandbox.NewProcessID(), Shell: "sudo sleep 98765", Timeout: 60e9})
		if err != nil {
			t.Fatal(err)
		}
		b.ok("until pgrep -fx 'sleep 98765' >/dev/null; do sleep 0.02; done")
		if err := p.Signal(syscall.SIGTERM); err != nil { // which the shell's child is: bash executes the last command
			t.Fatal(err)
		}
		if o, err := collect(t.Context(), p); err != nil || o.Signal != "SIGTERM" {
			t.Errorf("%+v, %v", o.Result, err)
		}
		_ = p.Close()
	})
}
