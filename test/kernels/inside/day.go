// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// step is one command of the CLI, and what it has to print.
type step struct {
	stdin string
	args  []string
	want  string // all of it; "" is whatever it prints
	fails string // what it says where it has to fail
}

func do(args ...string) step            { return step{args: args} }
func (s step) prints(want string) step  { s.want = want; return s }
func (s step) refused(says string) step { s.fails = says; return s }
func (s step) given(stdin string) step  { s.stdin = stdin; return s }
func in(box string, command ...string) step {
	return do(append([]string{"exec", box, "--"}, command...)...)
}
func bash(box string, script string) step    { return in(box, "bash", "-c", script) }
func python(box string, program string) step { return in(box, "python", "-c", program) }

// asleep counts the processes that sleep.
const asleep = "grep -l ^sleep /proc/[0-9]*/cmdline 2>/dev/null | wc -l"

// day is what a user does with a sandbox.
var day = []step{
	do("create", "--name", "one", "--memory", "256M"),
	python("one", "print(6*7)").prints("42\n"),
	bash("one", "id -u; pwd").prints("1000\n/workspace\n"),
	bash("one", "echo kept > file; mkdir dir; echo deep > dir/deep").prints(""),
	do("cp", "-", "one:from-host").given("over\n"),
	do("cp", "one:from-host", "-").prints("over\n"),
	bash("one", "cat from-host file").prints("over\nkept\n"),
	bash("one", "mount -t tmpfs none /mnt 2>/dev/null || echo refused").prints("refused\n"),
	do("exec", "one", "--user", "root", "--", "bash", "-c", "echo 127.1.1.1 here >> /etc/hosts; id -u").prints("0\n"),
	do("snapshot", "create", "one", "--name", "good"),
	bash("one", "rm -r dir file; echo worse > file"),
	do("rollback", "one", "--to", "good"),
	bash("one", "cat file dir/deep").prints("kept\ndeep\n"),
	do("fork", "one", "--key", "two"),
	bash("two", "cat file; echo mine > file").prints("kept\n"),
	bash("one", "cat file").prints("kept\n"),
	do("exec", "--detach", "one", "--", "sleep", "300"),
	do("pause", "one"),
	do("resume", "one"),
	bash("one", asleep).prints("1\n"),
	python("one", "bytearray(10**9)").refused("memory"),
	do("exec", "one", "--timeout", "1s", "--", "sleep", "60").refused("time"),
	do("stop", "one"),
	do("start", "one"),
	bash("one", "cat file; "+asleep).prints("kept\n0\n"),
	do("rm", "-f", "one", "two"),
	bash("one", "true").refused("no sandbox"),
}

// words are what the program said, without how it was called.
func words(err error) string {
	var r *refusal
	if errors.As(err, &r) {
		return r.said
	}
	return err.Error()
}

func (h *host) day(ctx context.Context) (string, error) {
	end, err := h.server(ctx)
	if err != nil {
		return "", err
	}
	var wrong []error
	for _, s := range day {
		out, err := h.sandpit(ctx, s.stdin, s.args...)
		command := "sandpit " + strings.Join(s.args, " ")
		switch {
		case s.fails != "" && (err == nil || !strings.Contains(words(err), s.fails)):
			wrong = append(wrong, fmt.Errorf("%s: got %q, %v; want a refusal that says %q", command, out, err, s.fails))
		case s.fails == "" && err != nil:
			wrong = append(wrong, err)
		case s.want != "" && out != s.want:
			wrong = append(wrong, fmt.Errorf("%s: got %q, want %q", command, out, s.want))
		}
	}
	if err := end(); err != nil {
		wrong = append(wrong, fmt.Errorf("the server's end: %w", err))
	}
	if len(wrong) > 0 {
		return h.log(), errors.Join(wrong...)
	}
	return "", nil
}
