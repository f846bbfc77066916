// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/redact"
	"sandpit.dev/redact/redacttest"
	"sandpit.dev/sandbox"
)

func testMasked(t *testing.T, open func(*testing.T) *agent.Client) {
	const secret, inner, lines = "tok-4f2a9c77", "2a9c", "-----BEGIN-----\nabcd\n-----END-----\n"
	values := [][]byte{[]byte(secret), []byte(inner), []byte(lines)}
	masked := func(text string) string {
		for _, v := range values {
			text = strings.ReplaceAll(text, string(v), strings.Repeat("*", len(v)))
		}
		return text
	}
	env := map[string]string{"SECRET": secret, "LINES": lines}

	t.Run("ValuesAreInNoOutput", func(t *testing.T) {
		c := open(t)
		out := run(t, c, agent.Command{Shell: `printf %s "a $SECRET b"; printf '%s' "$LINES$SECRET" >&2; echo x2a9cx`, Env: env, Redact: values})
		if want := "a ************ bx****x\n"; out.stdout != want || out.StdoutBytes != int64(len(want)) || out.StdoutTruncated {
			t.Errorf("stdout %q, not %q: %+v", out.stdout, want, out.Result)
		}
		if want := masked(lines + secret); out.stderr != want || out.StderrBytes != int64(len(want)) {
			t.Errorf("stderr %q, not %q: %+v", out.stderr, want, out.Result)
		}
		p, err := c.Attach(within(t), lastProcess(t, c).ID, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if again := collect(t, p); again.stdout != out.stdout || again.stderr != out.stderr {
			t.Errorf("the log has %q and %q", again.stdout, again.stderr)
		}
	})
	t.Run("InTheSpellingsThatTheTableHas", func(t *testing.T) {
		c := open(t)
		var values [][]byte
		for _, v := range redacttest.Values(redact.Output) {
			values = append(values, []byte(v))
		}
		redacttest.Run(t, redact.Output, func(t *testing.T, text string) (string, bool) {
			return run(t, c, agent.Command{Argv: []string{"cat"}, Stdin: []byte(text), Redact: values}).stdout, true
		})
	})
	t.Run("TheProgramHasThemAsTheyAre", func(t *testing.T) {
		sh := agent.Command{Shell: `[ "$SECRET" = "$1$(cat)" ] && printf %s "$SECRET" > file && wc -c < file`, Stdin: []byte(secret), Env: env, Redact: values}
		if out := run(t, open(t), sh); strings.TrimSpace(out.stdout) != fmt.Sprint(len(secret)) {
			t.Errorf("%q %q", out.stdout, out.stderr)
		}
	})
	t.Run("HoweverTheReadsFall", func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		var b strings.Builder
		for b.Len() < 3<<20 {
			b.WriteString([]string{secret, inner, lines, secret[:7], "tok-", "x", strings.Repeat("y", r.IntN(300))}[r.IntN(7)])
		}
		text := b.String()
		out := run(t, open(t), agent.Command{Argv: []string{"cat"}, Stdin: []byte(text), MaxStdout: 4 << 20, Redact: values})
		if want := masked(text); out.stdout != want || out.StdoutBytes != int64(len(want)) {
			t.Errorf("%d bytes of %d are not as they should be; %+v", len(out.stdout), len(want), out.Result)
		}
	})
	t.Run("AValueAtTheCapIsMaskedAsWell", func(t *testing.T) {
		out := run(t, open(t), agent.Command{Shell: `printf %s "$SECRET"; printf %s "$SECRET" >&2; seq 10`, Env: env, MaxStdout: 7, MaxStderr: 7, Redact: values})
		if out.stdout != "*******" || !out.StdoutTruncated || out.StdoutBytes != int64(len(secret))+21 || out.StdoutLost != out.StdoutBytes-7 {
			t.Errorf("%q %+v", out.stdout, out.Result)
		}
		if !strings.HasPrefix(out.stderr, "*******") || strings.Contains(out.stderr, "tok") {
			t.Errorf("%q", out.stderr)
		}
	})
	t.Run("WhatOnlyBeginsLikeOneComes", func(t *testing.T) {
		out := run(t, open(t), agent.Command{Shell: `printf %s tok-4f2; printf %s ---- >&2`, Redact: values})
		if out.stdout != "tok-4f2" || out.stderr != "----" || out.StdoutBytes != 7 {
			t.Errorf("%q %q %+v", out.stdout, out.stderr, out.Result)
		}
	})
	t.Run("AProgramThatWaitsIsNotHeldUp", func(t *testing.T) {
		for name, cmd := range map[string]agent.Command{
			"pipe":     {Shell: `printf %s "tok-4f"; read x; printf %s 2a9c77; echo .`, StreamStdin: true},
			"terminal": {Shell: `stty -echo; printf %s "tok-4f"; read x; printf %s 2a9c77; echo .`, Terminal: &agent.Terminal{Cols: 80, Rows: 24}},
		} {
			cmd.Redact = values
			p := start(t, open(t), cmd)
			await(t, p, func(s string) bool { return s == "tok-4f" }) // nothing more comes before we write
			if _, err := io.WriteString(p, "\n"); err != nil {
				t.Fatal(err)
			}
			if out := collect(t, p); strings.TrimSpace(out.stdout) != "******." { // what follows is known by then
				t.Errorf("%s: %q", name, out.stdout)
			}
		}
	})
	t.Run("AtATerminal", func(t *testing.T) {
		p := start(t, open(t), agent.Command{
			Shell: `printf %s "$LINES"; echo ready; read x; [ "$x" = "$SECRET" ] && echo same`, Env: env, Redact: values,
			Terminal: &agent.Terminal{Cols: 80, Rows: 24},
		})
		seen := await(t, p, func(s string) bool { return strings.Contains(s, "ready\r\n") })
		if want := strings.Repeat("*", len(lines)+3) + "ready\r\n"; seen != want {
			t.Errorf("%q, not %q", seen, want)
		}
		if _, err := io.WriteString(p, secret+"\n"); err != nil { // is echoed
			t.Fatal(err)
		}
		if out := collect(t, p); out.stdout != strings.Repeat("*", len(secret))+"\r\nsame\r\n" {
			t.Errorf("%q", out.stdout)
		}
	})
	t.Run("NorInARollingLog", func(t *testing.T) {
		out := run(t, open(t), agent.Command{Shell: `while [ $((i+=1)) -le 2000 ]; do echo "$SECRET"; done`, Env: env, Redact: values, Rolling: true, MaxStdout: 4096})
		if strings.Contains(out.stdout, "tok") || !strings.HasSuffix(out.stdout, "************\n") {
			t.Errorf("%.100q", out.stdout)
		}
	})
	t.Run("NorInItsRecord", func(t *testing.T) {
		c := open(t)
		for _, cmd := range []agent.Command{{Shell: ": " + secret}, {Argv: []string{"true", "-" + secret}}, {Argv: []string{secret}}} {
			cmd.Redact = values
			out := run(t, c, cmd)
			rec := lastProcess(t, c)
			if text := rec.Shell + strings.Join(rec.Argv, " ") + out.stderr; strings.Contains(text, inner) || !strings.Contains(text, "************") {
				t.Errorf("%q", text)
			}
		}
	})
	t.Run("AHeldCommandsToo", func(t *testing.T) {
		h, err := open(t).Hold(within(t), agent.Command{ID: sandbox.NewProcessID(), Shell: "cat", Stdin: []byte(secret), Redact: values})
		if err != nil {
			t.Fatal(err)
		}
		p, err := h.Start()
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if out := collect(t, p); out.stdout != "************" {
			t.Errorf("%q", out.stdout)
		}
	})
	t.Run("OneCommandsAreNotAnothers", func(t *testing.T) {
		c := open(t)
		other := run(t, c, agent.Command{Shell: "echo " + secret + " other-value", Redact: [][]byte{[]byte("other-value")}})
		none := run(t, c, agent.Command{Shell: "echo " + secret})
		if other.stdout != secret+" ***********\n" || none.stdout != secret+"\n" {
			t.Errorf("%q %q", other.stdout, none.stdout)
		}
	})
	t.Run("BoundsAreRefused", func(t *testing.T) {
		c := open(t)
		for _, bad := range [][][]byte{
			{[]byte("abc")}, {nil}, {make([]byte, agent.MaxRedactValue+1)}, make([][]byte, agent.MaxRedact+1),
			{make([]byte, 30<<10), make([]byte, 30<<10), make([]byte, 30<<10), make([]byte, 30<<10), make([]byte, 30<<10)},
		} {
			_, err := c.Start(within(t), agent.Command{ID: sandbox.NewProcessID(), Shell: "true", Redact: bad})
			wantCode(t, err, fault.Invalid)
		}
		var most [][]byte
		for i := range 4 {
			most = append(most, []byte(strings.Repeat(string(rune('a'+i)), agent.MaxRedactValue)))
		}
		if out := run(t, c, agent.Command{Shell: "head -c 40000 /dev/zero | tr '\\0' b", Redact: most}); out.stdout != strings.Repeat("*", 40000) {
			t.Errorf("%d bytes, %d masked", len(out.stdout), strings.Count(out.stdout, "*"))
		}
	})
}

// lastProcess is the record of the process that was started last.
func lastProcess(t *testing.T, c *agent.Client) sandbox.Process {
	t.Helper()
	all, err := c.Processes(within(t))
	if err != nil || len(all) == 0 {
		t.Fatalf("%d processes: %v", len(all), err)
	}
	return all[len(all)-1]
}
