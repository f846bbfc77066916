// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kernel_test

import (
	"strings"
	"testing"

	"sandpit.dev/fault"
	"sandpit.dev/kernel"
)

func TestBashCellsShareOneShell(t *testing.T) {
	t.Parallel()
	b := open(t, kernel.Bash)
	for _, c := range []struct {
		code, out string
		exit      int
	}{
		{"x=5; declare -A m=([a]=1); f() { echo \"f $x ${m[a]} $1\"; }; cd /usr; export E=e", "", 0},
		{"f 1\nf 2\npwd; bash -c 'echo $E'", "f 5 1 1\nf 5 1 2\n/usr\ne\n", 0},
		{"false", "", 1},
		{"echo $?", "1\n", 0},
		{"(exit 42)", "", 42},
		{"return 9\necho no", "", 9},
		{"for i in 1 2; do\n  echo $i\ndone\ncat <<'EOF'\nhere's $x\nEOF\ncat <<EOF\n$x\nEOF", "1\n2\nhere's $x\n5\n", 0},
		{"break; continue; echo still", "still\n", 0},
		{"alias hi='echo aliased'\nhi", "aliased\n", 0},
		{"read line; echo \"[$line] $?\"; cat", "[] 1\n", 0},
		{"sleep 0.01 &\nwait; echo done", "done\n", 0},
		{"exec >/dev/null; echo lost", "", 0},
		{"echo found", "found\n", 0},
		{"exec 9<<<word; read -u 9 w; echo $w", "word\n", 0},
		{"set -u; echo $no_such_variable; echo no", "", 1},
		{"set +u; echo ${no:?such} ; echo no", "", 1},
		{"set -f; IFS=:; trap 'true' DEBUG; trap 'echo caught' ERR; set -o noclobber", "", 0},
		{"false", "caught\n", 1},
		{"trap - ERR DEBUG; echo \"a  b\"", "a  b\n", 0},
		{"printf() { echo overridden; }; source() { echo overridden; }; builtin printf 'ok\\n'", "ok\n", 0},
		{"unset -f printf source; printf '%s' 'no newline'", "no newline", 0},
		{"", "", 0},
		{"# only a comment", "", 0},
		{"set -x; true", "", 0},
		{"{ set +x; } 2>/dev/null; echo 'it''s' \"'\" '\\'", "its ' \\\n", 0},
		{"printf '\\xff\\x00\\x1f'", "\xff\x00\x1f", 0},
		{"echo \"$0 $#\"", "bash 0\n", 0},
	} {
		r := b.run(c.code)
		if r.out != c.out || r.ExitCode != c.exit {
			t.Errorf("%q has said %q and ended with %d, want %q and %d; stderr %q", c.code, r.out, r.ExitCode, c.out, c.exit, r.err)
		}
	}
	big := "v='" + strings.Repeat("long ", 150_000) + "'; echo ${#v}"
	if r := b.run(big); r.out != "750000\n" {
		t.Errorf("a cell of %d bytes has said %.100q %.100q", len(big), r.out, r.err)
	}
}

func TestBashSaysNothingOfItsOwn(t *testing.T) {
	t.Parallel()
	b := open(t, kernel.Bash)
	for code, want := range map[string]string{
		"sleep 0.01 & sleep 0.05":                                    "", // no "[1] 123", no "Done"
		"set -x; echo a >/dev/null; { set +x; } 2>/dev/null":         "++ echo a\n",
		"set -v; true; set +v":                                       "",
		"echo hi! !!; bind; history":                                 "",
		"set; declare -p; declare -f; env; export -p; shopt; set -o": "",
		"PS1='prompt '; PS2=more; PROMPT_COMMAND='echo prompt'":      "",
		"true": "",
	} {
		if r := b.run(code); r.err != want && code != "echo hi! !!; bind; history" {
			t.Errorf("%q: stderr is %q, want %q", code, r.err, want)
		}
	}
	b.run("unset PROMPT_COMMAND; if [[ $(set; declare -p; declare -f) == *__sandpit_a* ]]; then :; fi")
	if r := b.run("if ; then"); r.ExitCode != 2 || !strings.Contains(r.err, "line 1: syntax error") {
		t.Errorf("a syntax error: %d %q", r.ExitCode, r.err)
	}
	if r := b.run("echo \"open"); r.ExitCode == 0 || r.err == "" {
		t.Errorf("an open quote: %d %q", r.ExitCode, r.err)
	}
	if r := b.run("nope"); r.ExitCode != 127 || !strings.Contains(r.err, "nope: command not found") {
		t.Errorf("no such command: %d %q", r.ExitCode, r.err)
	}
}

func TestBashExitEndsTheContext(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]int{
		"trap 'echo bye' EXIT; exit 7": 7, "echo bye; set -e; false; echo no": 1, "echo bye; exec true": 0, "echo bye; kill -KILL $$": 137, "echo bye; kill -TERM $$; sleep 1": 143,
	} {
		b := open(t, kernel.Bash)
		r := b.cell(kernel.Cell{Code: code})
		if r.End != kernel.Ended || r.Exit == nil || r.Exit.Code != want || r.out != "bye\n" || b.Status() != kernel.Dead {
			t.Errorf("%q: %+v %+v out %q err %q", code, r.Outcome, r.Exit, r.out, r.err)
		}
	}
}

func TestBashInterruptKeepsTheShell(t *testing.T) {
	t.Parallel()
	b := open(t, kernel.Bash)
	b.run("n=0")
	for _, code := range []string{
		"while :; do :; done", // at once
		"((++n)); echo GO; while :; do :; done",
		"((++n)); echo GO; sleep 100; echo no",
		"((++n)); sh -c 'echo GO; exec sleep 100'; echo no",
		"((++n)); f() { while :; do sleep 0.01; done; }; echo GO; f",
		"((++n)); echo GO; wait -n & while :; do wait; done",
	} {
		if r := b.interrupt(code); r.End != kernel.Interrupted || strings.Contains(r.out, "no") {
			t.Errorf("%q: %+v %q %q", code, r.Outcome, r.out, r.err)
		}
	}
	if r := b.run("echo $n"); r.out != "5\n" {
		t.Errorf("n is %q", r.out)
	}
}

func TestBashEnvironmentIsOfTheCell(t *testing.T) {
	t.Parallel()
	b := open(t, kernel.Bash)
	b.run("export KEEP=old")
	r := b.cell(kernel.Cell{Code: "echo $KEEP; sh -c 'echo $KEEP $ONCE'; x=set", Env: map[string]string{"KEEP": "new", "ONCE": "it's\n$(two)"}})
	if r.out != "new\nnew it's $(two)\n" {
		t.Errorf("inside: %q %q", r.out, r.err)
	}
	if r := b.run("echo $KEEP [$ONCE] $x"); r.out != "old [] set\n" {
		t.Errorf("after: %q", r.out)
	}
}

func TestBashCellsReadTheirInput(t *testing.T) {
	t.Parallel()
	b := open(t, kernel.Bash)
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	long := strings.Repeat("it's a \\ line\n", 60_000)
	for _, c := range []struct{ code, in, out string }{
		{"cat", "one\ntwo\n", "one\ntwo\n"},
		{"cat", "no end", "no end"},
		{"cat", string(all), string(all)},
		{"cat", "ü\n", "ü\n"},
		{"cat", "'\\''\n", "'\\''\n"},
		{"cat", "\n", "\n"},
		{"wc -c", long, "840000\n"},
		{"wc -c", long + "x", "840001\n"},
		{"read a; read b; echo $b $a; cat", "one\ntwo\nrest\n", "two one\nrest\n"},
		{"echo leaves it; x=kept", long + "x", "leaves it\n"},
		{"cat; echo $x", "", "kept\n"},
	} {
		r := b.cell(kernel.Cell{Code: c.code, Stdin: []byte(c.in)})
		if r.out != c.out || r.ExitCode != 0 || r.err != "" {
			t.Errorf("%s with %.40q: %.80q, %d, %q", c.code, c.in, r.out, r.ExitCode, r.err)
		}
	}
	_, err := b.Execute(t.Context(), kernel.Cell{Stdin: make([]byte, kernel.MaxStdin+1)}, kernel.Handler{})
	if !fault.Is(err, fault.TooLarge) {
		t.Errorf("too much: %v", err)
	}
}
