// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package plain_test

import (
	"encoding/binary"
	"os"
	"strings"
	"syscall"
	"testing"

	"sandpit.dev/agent"
	"sandpit.dev/agent/boot/plain"
	"sandpit.dev/agent/handshake"
	"sandpit.dev/sandbox"
)

// rabbit is a program that does nothing but fork, and exit in the parent: each process lives for some
// microseconds in a session of its own. It first has as many lines of them as a byte in it says.
func rabbit(lines byte) []byte {
	code := []byte{
		0xbb, lines, 0, 0, 0, // mov ebx, lines
		0xb8, 57, 0, 0, 0, // more: mov eax, fork
		0x0f, 0x05, // syscall
		0x85, 0xc0, // test eax, eax
		0x74, 0x04, // jz run
		0xff, 0xcb, // dec ebx
		0x75, 0xf1, // jnz more
		0xb8, 112, 0, 0, 0, // run: mov eax, setsid
		0x0f, 0x05, // syscall
		0xb8, 57, 0, 0, 0, // mov eax, fork
		0x0f, 0x05, // syscall
		0x85, 0xc0, // test eax, eax
		0x7e, 0xee, // jle run: the child, or who cannot fork
		0xb8, 60, 0, 0, 0, // mov eax, exit
		0x31, 0xff, // xor edi, edi
		0x0f, 0x05, // syscall
	}
	const base, head = 0x400000, 64 + 56
	b := []byte("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	b = binary.LittleEndian.AppendUint16(b, 2)  // it is executed
	b = binary.LittleEndian.AppendUint16(b, 62) // by an amd64
	b = binary.LittleEndian.AppendUint32(b, 1)
	for _, n := range []uint64{base + head, 64, 0} { // entry, program headers, sections
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	b = binary.LittleEndian.AppendUint32(b, 0)
	for _, n := range []uint16{64, 56, 1, 0, 0, 0} {
		b = binary.LittleEndian.AppendUint16(b, n)
	}
	b = binary.LittleEndian.AppendUint32(b, 1) // to be loaded
	b = binary.LittleEndian.AppendUint32(b, 5) // readable, executable
	for _, n := range []uint64{0, base, base, uint64(head + len(code)), uint64(head + len(code)), 0x1000} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return append(b, code...)
}

// left counts the processes beside the agent, its keepers and who counts.
const left = `n=0; for s in /proc/[0-9]*/stat; do
	read -r line < $s 2>/dev/null || continue
	case "$line" in *"(sandpit-agent)"*|*") Z "*|"$$ "*) ;; *) n=$((n+1)) ;; esac
done; echo $n`

// whatever says how many processes there are.
func others(t *testing.T, b *box) string {
	t.Helper()
	return run(t, b.client, agent.Command{Shell: left})
}

// Nothing that a command starts gets out of it, and another command goes on beside its end.
func TestNothingStepsOutOfItsCommand(t *testing.T) {
	for name, attack := range map[string]struct{ shell, user string }{
		"ForksTwiceInSessionsOfItsOwn": {shell: "setsid sh -c '(setsid sleep 1000 &) &' ; (setsid setsid sleep 1000 &); echo up; wait"},
		"ForksWithoutEnd":              {shell: "ulimit -u 400; chmod +x rabbit; ./rabbit & echo up; wait; sleep 1000"},
		"ForksInManyLines":             {shell: "ulimit -u 400; chmod +x rabbits; ./rabbits & echo up; wait; sleep 1000"},
		"AsABomb":                      {shell: "ulimit -u 400; f() { f | f & }; f 2>/dev/null; echo up; sleep 1000"},
		"WithoutItsFirstThread": {shell: `python3 -c '
import ctypes, os, threading, time
def rest():
    while True:
        if os.fork() == 0: os.setsid(); time.sleep(1000)
        time.sleep(0.001)
threading.Thread(target=rest).start()
print("up", flush=True)
ctypes.CDLL(None).syscall(60, 0)'`},
		"MakesSiblings": {shell: `python3 -c '
import ctypes, os, time
libc = ctypes.CDLL(None)
for i in range(5):
    if libc.syscall(56, 0x8000 | 17, 0, 0, 0, 0) == 0:
        os.setsid(); time.sleep(1000)
print("up", flush=True); time.sleep(1000)'`},
		"RootKillsItsKeeper":  {user: "root", shell: "(setsid sleep 1000 &); kill -9 $PPID; echo up; sleep 1000"},
		"RootStopsItsKeeper":  {user: "root", shell: "(setsid sleep 1000 &); kill -STOP $PPID; echo up; sleep 1000"},
		"RootKillsAllThere":   {user: "root", shell: "(setsid sleep 1000 &); echo up; kill -9 -1; sleep 1000"},
		"LeavesItBehind":      {shell: "(setsid sh -c 'while :; do sleep 0.01; done' >/dev/null 2>&1 &); echo up"},
		"LeavesARabbitBehind": {shell: "ulimit -u 400; chmod +x rabbit; (setsid ./rabbit >/dev/null 2>&1 &); echo up"},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, plain.Config{UID: 1000, GID: 1000, Root: true, Key: handshake.NewKey()}, syscall.CLONE_NEWPID)
			for file, lines := range map[string]byte{"rabbit": 1, "rabbits": 4} {
				if _, _, err := b.client.WriteFile(t.Context(), file, strings.NewReader(string(rabbit(lines))), sandbox.WriteFileOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			spares := !strings.HasPrefix(name, "RootKillsAll")
			var beside *agent.Process
			var err error
			if spares {
				if beside, err = b.client.Start(t.Context(), agent.Command{ID: sandbox.NewProcessID(), Shell: "echo up; read x; echo on", StreamStdin: true}); err != nil {
					t.Fatal(err)
				}
				defer beside.Close()
				follow(t, beside, "up\n")
			}
			p, err := b.client.Start(t.Context(), agent.Command{ID: sandbox.NewProcessID(), Shell: attack.shell, User: attack.user})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			follow(t, p, "up\n")
			if err := b.client.Kill(t.Context(), p.ID(), sandbox.CauseKilled); err != nil {
				t.Fatal(err)
			}
			if spares {
				if got := others(t, b); got != "1\n" { // the one beside
					t.Errorf("processes that are left: %s%s", got, run(t, b.client, agent.Command{Shell: "ps -ef || cat /proc/[0-9]*/stat"}))
				}
				if _, err := beside.Write([]byte("x\n")); err != nil {
					t.Fatal(err)
				}
				if got := follow(t, beside, "on\n"); got != "on\n" {
					t.Errorf("the command beside it: %q", got)
				}
			} else if got := others(t, b); got != "0\n" {
				t.Errorf("processes that are left: %s%s", got, run(t, b.client, agent.Command{Shell: "cat /proc/[0-9]*/stat"}))
			}
		})
	}
}

// The keeper of a command is no way into the agent for it.
func TestTheUserCannotTouchItsKeeper(t *testing.T) {
	b := start(t, plain.Config{UID: 1000, GID: 1000}, syscall.CLONE_NEWPID)
	got := run(t, b.client, agent.Command{Shell: `for s in KILL STOP TERM; do kill -$s $PPID 2>/dev/null && echo sent $s; done
		cat /proc/$PPID/mem /proc/$PPID/environ 2>/dev/null && echo read; ls /proc/$PPID/fd/0 2>/dev/null && echo listed; echo tried`})
	if got != "tried\n" {
		t.Errorf("got %q", got)
	}
	if os.Getuid() != 0 {
		t.Error("and this was not root's agent")
	}
}

// The profile of an Engine refuses clone3, by a filter that nobody gets rid of.
func TestKeepersWhereClone3IsRefused(t *testing.T) {
	const refuse = `import ctypes, os, struct, sys
load, jump, end = 0x20, 0x15, 0x06
filter = b"".join(struct.pack("HBBI", *i) for i in [
    (load, 0, 0, 0), (jump, 0, 1, 435), (end, 0, 0, 0x50000 | 38), (end, 0, 0, 0x7fff0000)])
code = ctypes.create_string_buffer(filter)
prog = struct.pack("HxxxxxxP", 4, ctypes.addressof(code))
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(22, 2, ctypes.create_string_buffer(prog), 0, 0) != 0: sys.exit("no filter: %d" % ctypes.get_errno())
os.execv(sys.argv[1], sys.argv[1:])`
	b := startBelow(t, plain.Config{UID: 1000, GID: 1000}, syscall.CLONE_NEWPID, refuse)
	if got := run(t, b.client, agent.Command{Shell: `python3 -c '
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print(libc.syscall(435, 0, 0), ctypes.get_errno())'; grep -E "^Sig(Blk|Ign)" /proc/self/status`}); got != "-1 38\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n" {
		t.Errorf("inside: %q", got)
	}
	p, err := b.client.Start(t.Context(), agent.Command{ID: sandbox.NewProcessID(), Shell: "(setsid setsid sleep 1000 &); echo up; sleep 1000"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	follow(t, p, "up\n")
	if err := b.client.Kill(t.Context(), p.ID(), sandbox.CauseKilled); err != nil {
		t.Fatal(err)
	}
	if got := others(t, b); got != "0\n" {
		t.Errorf("processes that are left: %s", got)
	}
}

// As any other process of a container the agent keeps commands together as well, and their dead are reaped.
func TestKeepersOfAnAgentThatIsNotTheFirst(t *testing.T) {
	b := start(t, plain.Config{UID: 1000, GID: 1000}, 0)
	// Zombies of the agent's and of its keepers, and processes that sleep as only these do.
	const look = `exec 2>/dev/null; for s in /proc/[0-9]*/stat; do read -r n c st parent rest < $s 2>/dev/null || continue
	[ $st = Z ] && [ "$(cat /proc/$parent/comm 2>/dev/null)" = sandpit-agent ] && echo dead $n; done
grep -lzx '[9]8765.4' /proc/[0-9]*/cmdline 2>/dev/null | wc -l`
	run(t, b.client, agent.Command{Shell: "for i in 1 2 3 4 5 6 7 8; do (setsid true &); done"})
	p, err := b.client.Start(t.Context(), agent.Command{ID: sandbox.NewProcessID(), Shell: "(setsid setsid sleep 98765.4 &); (true &); while ! grep -qzx '[9]8765.4' /proc/[0-9]*/cmdline 2>/dev/null; do :; done; echo up; sleep 1000"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	follow(t, p, "up\n")
	// Between a process's end and its parent's look at that it is a zombie: one that stays is a leak.
	looks := func(when, want string) {
		t.Helper()
		got := ""
		for range 50 {
			if got = run(t, b.client, agent.Command{Shell: look}); got == want {
				return
			}
		}
		t.Errorf("%s: %q", when, got)
	}
	looks("while it runs", "1\n")
	if err := b.client.Kill(t.Context(), p.ID(), sandbox.CauseKilled); err != nil {
		t.Fatal(err)
	}
	looks("after it was killed", "0\n")
}
